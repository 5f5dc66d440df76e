// libcurl and OpenSSL's libcrypto, loaded when something first needs them. They bring thirty
// libraries with them, and linking those would be an eighth of the time that a server needs to
// start.
#pragma once

#include <curl/curl.h>
#include <openssl/evp.h>

#include "dunlin/status.h"

namespace dunlin {

// libcurl's functions by their own names, without "curl_". Initialised for the whole process.
struct CurlLibrary {
  decltype(&curl_global_init) global_init;
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&curl_easy_setopt) easy_setopt;
  decltype(&curl_easy_perform) easy_perform;
  decltype(&curl_easy_getinfo) easy_getinfo;
  decltype(&curl_easy_strerror) easy_strerror;
  decltype(&curl_multi_init) multi_init;
  decltype(&curl_multi_cleanup) multi_cleanup;
  decltype(&curl_multi_setopt) multi_setopt;
  decltype(&curl_multi_add_handle) multi_add_handle;
  decltype(&curl_multi_remove_handle) multi_remove_handle;
  decltype(&curl_multi_socket_action) multi_socket_action;
  decltype(&curl_multi_info_read) multi_info_read;
  decltype(&curl_slist_append) slist_append;
  decltype(&curl_slist_free_all) slist_free_all;
};

// libcrypto's, without "EVP_".
struct DigestLibrary {
  decltype(&EVP_MD_CTX_new) context_new;
  decltype(&EVP_MD_CTX_free) context_free;
  decltype(&EVP_sha256) sha256;
  decltype(&EVP_DigestInit_ex) init;
  decltype(&EVP_DigestUpdate) update;
  decltype(&EVP_DigestFinal_ex) final;
};

// kUnimplemented where the library is not installed, with what to do. Thread-safe.
Result<const CurlLibrary*> curl_library();
Result<const DigestLibrary*> digest_library();

}  // namespace dunlin
