// Fetches one file over HTTP(S): resumes, checks, and puts it in place whole or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "dunlin/status.h"

namespace dunlin::cli {

struct DownloadRequest {
  std::string url;
  std::string destination;  // written as DESTINATION.part, then renamed over it
  std::string sha256;  // lower-case hex; "": what the server announces (x-linked-etag), if anything
  std::uint64_t size_bytes = 0;  // 0: not known
  std::string bearer_token;      // sent to the url's own host only
  int max_attempts = 5;          // a cut connection resumes where it was
  int retry_delay_ms = 1000;     // doubled from try to try
  int connect_timeout_s = 20;
};

using DownloadProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

// Proxy variables are honoured (libcurl). A part file stays for the next try, except where its
// checksum is wrong. kPermissionDenied: 401 or 403. kNotFound: 404. kResourceExhausted: the disk.
// kDataLoss: the checksum differs. kUnavailable: the network.
Outcome download_file(const DownloadRequest& request, const DownloadProgress& progress);

// Lower-case hex SHA-256 of a file.
Result<std::string> sha256_of_file(const std::string& path);

// Fails with kResourceExhausted where the file system of `folder` lacks that much room.
Outcome check_disk_space(const std::string& folder, std::uint64_t needed_bytes);

}  // namespace dunlin::cli
