// What a client is told when a request can't be served: an HTTP status and OpenAI's error object.
#pragma once

#include <string>
#include <string_view>

#include "dunlin/status.h"
#include "engine/request.h"

namespace dunlin {

struct ApiError {
  int http_status = 400;
  std::string message;     // for the user; may quote client bytes, error_body() makes them valid
  std::string param = {};  // the field that is wrong; "" gives null
  std::string code = {};   // a stable word for programs; "" gives null
};

template <typename T>
using ApiResult = tl::expected<T, ApiError>;

inline tl::unexpected<ApiError> api_fail(ApiError error) {
  return tl::unexpected<ApiError>(std::move(error));
}

// The one table from Status to HTTP.
int http_status_of(StatusCode code);
ApiError api_error_from(const Status& status, std::string param = {});
// Of a request that the engine gave up; with the word for the time limit, if that was why.
ApiError api_error_from(const Status& status, TimeLimit ended_by);

// OpenAI's word for the kind of error: "invalid_request_error", "rate_limit_error", ...
std::string_view error_type(int http_status);
// {"error":{"message","type","param","code"}}: valid UTF-8 JSON whatever the message holds.
std::string error_body(const ApiError& error);

}  // namespace dunlin
