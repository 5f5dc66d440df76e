#include "net/net_libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

namespace dunlin {
namespace {

// Loads a library for the rest of the process and finds functions in it.
class Loader {
 public:
  explicit Loader(const std::string& name)
      : name_(name), handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) note_failure();
  }

  template <typename Function>
  Loader& find(const char* name, Function*& function) {
    if (handle_ == nullptr) return *this;
    function = reinterpret_cast<Function*>(::dlsym(handle_, name));
    if (function == nullptr) note_failure();
    return *this;
  }
  Outcome outcome() const { return outcome_; }

 private:
  void note_failure() {
    const char* error = ::dlerror();
    outcome_ = fail(StatusCode::kUnimplemented,
                    fmt::format("this needs {}, which can't be loaded ({}); install it, or for a "
                                "model, fetch the file yourself and give its path",
                                name_, error != nullptr ? error : "no reason given"));
  }

  std::string name_;
  void* handle_;
  Outcome outcome_;
};

Result<CurlLibrary> load_curl() {
  CurlLibrary curl{};
  Loader loader("libcurl.so.4");
  loader.find("curl_global_init", curl.global_init)
      .find("curl_easy_init", curl.easy_init)
      .find("curl_easy_cleanup", curl.easy_cleanup)
      .find("curl_easy_setopt", curl.easy_setopt)
      .find("curl_easy_perform", curl.easy_perform)
      .find("curl_easy_getinfo", curl.easy_getinfo)
      .find("curl_easy_strerror", curl.easy_strerror)
      .find("curl_multi_init", curl.multi_init)
      .find("curl_multi_cleanup", curl.multi_cleanup)
      .find("curl_multi_setopt", curl.multi_setopt)
      .find("curl_multi_add_handle", curl.multi_add_handle)
      .find("curl_multi_remove_handle", curl.multi_remove_handle)
      .find("curl_multi_socket_action", curl.multi_socket_action)
      .find("curl_multi_info_read", curl.multi_info_read)
      .find("curl_slist_append", curl.slist_append)
      .find("curl_slist_free_all", curl.slist_free_all);
  DUNLIN_TRY(loader.outcome());
  curl.global_init(CURL_GLOBAL_DEFAULT);
  return curl;
}

Result<DigestLibrary> load_digest() {
  DigestLibrary digest{};
  Loader loader(fmt::format("libcrypto.so.{}", OPENSSL_SHLIB_VERSION));
  loader.find("EVP_MD_CTX_new", digest.context_new)
      .find("EVP_MD_CTX_free", digest.context_free)
      .find("EVP_sha256", digest.sha256)
      .find("EVP_DigestInit_ex", digest.init)
      .find("EVP_DigestUpdate", digest.update)
      .find("EVP_DigestFinal_ex", digest.final);
  DUNLIN_TRY(loader.outcome());
  return digest;
}

template <typename Library>
Result<const Library*> pointer_to(const Result<Library>& library) {
  if (!library) return tl::unexpected(library.error());
  return &*library;
}

}  // namespace

Result<const CurlLibrary*> curl_library() {
  static const Result<CurlLibrary> curl = load_curl();
  return pointer_to(curl);
}

Result<const DigestLibrary*> digest_library() {
  static const Result<DigestLibrary> digest = load_digest();
  return pointer_to(digest);
}

}  // namespace dunlin
