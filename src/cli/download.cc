#include "cli/download.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/ascii.h"
#include "cli/progress.h"
#include "net/net_libraries.h"

namespace dunlin::cli {
namespace {

namespace fs = std::filesystem;

// Room left on the disk beside the file itself.
constexpr std::uint64_t kDiskReserveBytes = 64u << 20;

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

// The state of one attempt, filled by libcurl's callbacks.
struct Attempt {
  const CurlLibrary* library = nullptr;
  CURL* curl = nullptr;
  std::FILE* file = nullptr;
  const DownloadRequest* request = nullptr;
  const DownloadProgress* progress = nullptr;
  std::uint64_t resume_from = 0;
  std::uint64_t received = 0;
  std::string announced_sha256;
  Outcome refused;  // why a callback stopped the transfer
};

long response_code(const Attempt& attempt) {
  long code = 0;
  attempt.library->easy_getinfo(attempt.curl, CURLINFO_RESPONSE_CODE, &code);
  return code;
}

std::uint64_t total_size(const Attempt& attempt) {
  curl_off_t length = -1;
  attempt.library->easy_getinfo(attempt.curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
  return length < 0 ? 0 : attempt.resume_from + static_cast<std::uint64_t>(length);
}

// Hugging Face announces the SHA-256 of a large file before redirecting to it.
std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
  auto& attempt = *static_cast<Attempt*>(user);
  const std::string line = ascii_lower(std::string_view(data, size * count));
  if (line.rfind("x-linked-etag:", 0) == 0) {
    std::string hex;
    for (char c : line.substr(14))
      if (std::isxdigit(static_cast<unsigned char>(c))) hex += c;
    if (hex.size() == 64) attempt.announced_sha256 = hex;
    const std::string& wanted = attempt.request->sha256;
    if (hex.size() == 64 && !wanted.empty() && hex != wanted) {
      attempt.refused =
          fail(StatusCode::kDataLoss, fmt::format("{} holds another file (SHA-256 {}, wanted {})",
                                                  attempt.request->url, hex, wanted));
      return 0;
    }
  }
  return size * count;
}

// The first bytes decide whether the server honoured the range; then they are appended.
std::size_t on_data(char* data, std::size_t size, std::size_t count, void* user) {
  auto& attempt = *static_cast<Attempt*>(user);
  const std::size_t bytes = size * count;
  if (attempt.received == 0) {
    if (response_code(attempt) >= 400) return bytes;  // an error page is no file
    const std::uint64_t total = std::max(total_size(attempt), attempt.request->size_bytes);
    attempt.refused =
        check_disk_space(fs::path(attempt.request->destination).parent_path().string(),
                         total - std::min(total, attempt.resume_from));
    if (!attempt.refused) return 0;
  }
  if (std::fwrite(data, 1, bytes, attempt.file) != bytes) {
    attempt.refused = fail(
        StatusCode::kResourceExhausted,
        fmt::format("can't write {}.part: the disk may be full", attempt.request->destination));
    return 0;
  }
  attempt.received += bytes;
  if (*attempt.progress)
    (*attempt.progress)(attempt.resume_from + attempt.received, total_size(attempt));
  return bytes;
}

void set_options(Attempt& attempt) {
  const DownloadRequest& request = *attempt.request;
  const auto set = [&](CURLoption option, auto value) {
    attempt.library->easy_setopt(attempt.curl, option, value);
  };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 10L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_USERAGENT, "dunlin");
  set(CURLOPT_CONNECTTIMEOUT, long{request.connect_timeout_s});
  set(CURLOPT_LOW_SPEED_LIMIT, 100L);  // bytes a second, over
  set(CURLOPT_LOW_SPEED_TIME, 30L);    // this many seconds: a dead peer
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_HEADERFUNCTION, &on_header);
  set(CURLOPT_HEADERDATA, &attempt);
  set(CURLOPT_WRITEFUNCTION, &on_data);
  set(CURLOPT_WRITEDATA, &attempt);
  set(CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(attempt.resume_from));
  if (!request.bearer_token.empty()) {
    set(CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    set(CURLOPT_XOAUTH2_BEARER, request.bearer_token.c_str());
  }
}

Outcome status_of_answer(long code, const DownloadRequest& request) {
  switch (code) {
    case 401:
    case 403:
      return fail(
          StatusCode::kPermissionDenied,
          fmt::format("{} answers {}: the file needs an access token; {}", request.url, code,
                      request.bearer_token.empty()
                          ? "set HF_TOKEN to yours"
                          : "HF_TOKEN is set but not accepted, or the model's terms are not"));
    case 404:
      return fail(StatusCode::kNotFound, fmt::format("{} does not exist (404)", request.url));
    default: return fail(StatusCode::kUnavailable, fmt::format("{} answers {}", request.url, code));
  }
}

// One transfer into the part file. kUnavailable is worth another try.
Outcome try_once(const DownloadRequest& request, const DownloadProgress& progress,
                 std::string& announced) {
  DUNLIN_ASSIGN(library, curl_library());
  const std::string part = request.destination + ".part";
  std::error_code ignored;
  Attempt attempt;
  attempt.resume_from = fs::exists(part, ignored) ? fs::file_size(part, ignored) : 0;
  const File file(std::fopen(part.c_str(), attempt.resume_from > 0 ? "ab" : "wb"));
  if (!file) return fail(StatusCode::kPermissionDenied, fmt::format("can't write {}", part));
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(library->easy_init(), library->easy_cleanup);
  attempt.library = library;
  attempt.curl = curl.get();
  attempt.file = file.get();
  attempt.request = &request;
  attempt.progress = &progress;
  set_options(attempt);
  const CURLcode code = library->easy_perform(curl.get());
  announced = attempt.announced_sha256;
  const bool flushed = std::fflush(file.get()) == 0;
  if (fs::file_size(part, ignored) == 0) fs::remove(part, ignored);
  if (!attempt.refused) return attempt.refused;
  if (!flushed)
    return fail(StatusCode::kResourceExhausted,
                fmt::format("can't write {}: the disk may be full", part));
  const long answer = response_code(attempt);
  if (code == CURLE_RANGE_ERROR || answer == 416) {  // the server can't go on from here: start over
    fs::remove(part, ignored);
    return fail(StatusCode::kUnavailable, fmt::format("{} can't be resumed", request.url));
  }
  if (answer >= 400) return status_of_answer(answer, request);
  if (code != CURLE_OK)
    return fail(StatusCode::kUnavailable,
                fmt::format("{}: {}", request.url, library->easy_strerror(code)));
  return {};
}

Outcome check_part(const DownloadRequest& request, const std::string& announced) {
  const std::string part = request.destination + ".part";
  const std::string& wanted = request.sha256.empty() ? announced : request.sha256;
  if (wanted.empty()) return {};
  DUNLIN_ASSIGN(sum, sha256_of_file(part));
  if (sum == wanted) return {};
  std::error_code ignored;
  fs::remove(part, ignored);
  return fail(StatusCode::kDataLoss,
              fmt::format("{} came with the wrong SHA-256 ({}, wanted {}); it was not kept",
                          request.url, sum, wanted));
}

}  // namespace

Outcome download_file(const DownloadRequest& request, const DownloadProgress& progress) {
  const std::string part = request.destination + ".part";
  std::error_code error;
  fs::create_directories(fs::path(request.destination).parent_path(), error);
  if (error)
    return fail(StatusCode::kPermissionDenied,
                fmt::format("can't make the folder of {}: {}", part, error.message()));
  bool resumed = fs::exists(part, error);
  for (int attempt = 1, delay_ms = request.retry_delay_ms;; ++attempt, delay_ms *= 2) {
    std::string announced;
    Outcome outcome = try_once(request, progress, announced);
    if (outcome) outcome = check_part(request, announced);
    if (outcome) break;
    const StatusCode code = outcome.error().code();
    // A part file of an older version of the file spoils the sum: once more from the start.
    const bool stale_part = code == StatusCode::kDataLoss && resumed;
    if (attempt >= request.max_attempts || (code != StatusCode::kUnavailable && !stale_part))
      return outcome;
    resumed = !stale_part;
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
  }
  fs::rename(part, request.destination, error);
  if (error)
    return fail(StatusCode::kPermissionDenied,
                fmt::format("can't rename {}: {}", part, error.message()));
  return {};
}

Result<std::string> sha256_of_file(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) return fail(StatusCode::kNotFound, fmt::format("can't read {}", path));
  DUNLIN_ASSIGN(digest, digest_library());
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(digest->context_new(),
                                                                   digest->context_free);
  digest->init(context.get(), digest->sha256(), nullptr);
  constexpr std::size_t kChunk = 1 << 20;
  const std::unique_ptr<char[]> chunk(new char[kChunk]);
  while (const std::size_t got = std::fread(chunk.get(), 1, kChunk, file.get()))
    digest->update(context.get(), chunk.get(), got);
  unsigned char sum[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  digest->final(context.get(), sum, &size);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", sum[i]);
  return hex;
}

Outcome check_disk_space(const std::string& folder, std::uint64_t needed_bytes) {
  struct statvfs info{};
  if (statvfs(folder.empty() ? "." : folder.c_str(), &info) != 0) return {};
  const std::uint64_t free_bytes = std::uint64_t{info.f_bavail} * info.f_frsize;
  if (free_bytes >= needed_bytes + kDiskReserveBytes) return {};
  return fail(
      StatusCode::kResourceExhausted,
      fmt::format("{} has {} free and {} is needed; free some, or set DUNLIN_CACHE to another disk",
                  folder, format_bytes(free_bytes),
                  format_bytes(needed_bytes + kDiskReserveBytes)));
}

}  // namespace dunlin::cli
