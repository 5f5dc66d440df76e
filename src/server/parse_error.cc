#include "server/parse_error.h"

#include <string>

#include <boost/beast/http/error.hpp>

namespace dunlin {

namespace http = boost::beast::http;

std::optional<ApiError> parse_error(const boost::system::error_code& error,
                                    const ServerConfig& config) {
  if (error == http::error::header_limit)
    return ApiError{431, "the request's headers are larger than " +
                             std::to_string(config.max_header_bytes) + " bytes"};
  if (error == http::error::buffer_overflow)
    return ApiError{431, "the request's trailers or chunk extensions are too large"};
  if (error == http::error::body_limit)
    return ApiError{413,
                    "the body is larger than " + std::to_string(config.max_body_bytes) + " bytes"};
  if (error == http::error::end_of_stream || error == http::error::partial_message)
    return std::nullopt;
  if (error.category() == make_error_code(http::error::bad_method).category())
    return ApiError{400, "this is not a valid HTTP/1 request: " + error.message()};
  return std::nullopt;
}

}  // namespace dunlin
