#include "server/http_response.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <random>

#include <fmt/format.h>

namespace dunlin {
namespace {

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 417: return "Expectation Failed";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    default: return status < 500 ? "Error" : "Internal Server Error";
  }
}

std::string head_begin(int status, const HeadInfo& info) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nServer: dunlin\r\nX-Request-Id: {}\r\n", status,
                                 reason_phrase(status), info.request_id);
  head += info.keep_alive ? (info.http_1_0 ? "Connection: keep-alive\r\n" : "")
                          : "Connection: close\r\n";
  return head + "X-Content-Type-Options: nosniff\r\n";
}

}  // namespace

HttpResponse error_response(const ApiError& error) {
  HttpResponse response;
  response.status = error.http_status;
  response.body = error_body(error);
  if (error.http_status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (error.http_status == 429 || error.http_status == 503)
    response.headers.emplace_back("Retry-After", "1");
  return response;
}

std::string response_head(const HttpResponse& response, const HeadInfo& info) {
  std::string head = head_begin(response.status, info);
  for (const auto& [name, value] : response.headers) head += fmt::format("{}: {}\r\n", name, value);
  if (response.status != 204 && response.status != 304) {
    head += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", response.content_type,
                        response.content().size());
  }
  return head + "\r\n";
}

std::string stream_head(const HeadInfo& info) {
  std::string head = head_begin(200, info);
  head +=
      "Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"
      "X-Accel-Buffering: no\r\n";
  if (!info.http_1_0) head += "Transfer-Encoding: chunked\r\n";
  return head + "\r\n";
}

std::string chunk_begin(std::size_t num_bytes) {
  char digits[2 * sizeof num_bytes];
  const char* end = std::to_chars(digits, std::end(digits), num_bytes, 16).ptr;
  return std::string(digits, static_cast<std::size_t>(end - digits)) + "\r\n";
}

std::string pick_request_id(std::string_view from_client) {
  const bool is_word = !from_client.empty() && from_client.size() <= 128 &&
                       std::all_of(from_client.begin(), from_client.end(),
                                   [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (is_word) return std::string(from_client);
  std::random_device device;
  return fmt::format("req-{:08x}{:08x}{:08x}", device(), device(), device());
}

}  // namespace dunlin
