// Answers as bytes: status line and headers written by hand, so that one place decides them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/api_error.h"

namespace dunlin {

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::string_view static_body;  // instead of `body`: bytes that live as long as the program
  std::vector<std::pair<std::string, std::string>> headers;

  std::string_view content() const { return static_body.empty() ? body : static_body; }
};

HttpResponse error_response(const ApiError& error);

// What of the request and the connection goes into every head.
struct HeadInfo {
  bool keep_alive = true;
  bool http_1_0 = false;
  std::string request_id;
};

// Status line, headers and the empty line of a whole answer.
std::string response_head(const HttpResponse& response, const HeadInfo& info);
// The same for a stream of server-sent events: chunked, or until the end of the connection where
// the client speaks HTTP/1.0.
std::string stream_head(const HeadInfo& info);

// What stands before and behind so many bytes that are one chunk of a chunked body.
std::string chunk_begin(std::size_t num_bytes);
inline constexpr std::string_view kChunkEnd = "\r\n";
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// The client's X-Request-Id where it is a word of at most 128 printable ASCII characters, else a
// new one.
std::string pick_request_id(std::string_view from_client);

}  // namespace dunlin
