#include "api/api_error.h"

#include <nlohmann/json.hpp>

namespace dunlin {

int http_status_of(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument: return 400;
    case StatusCode::kUnimplemented: return 400;
    case StatusCode::kAlreadyExists: return 400;
    case StatusCode::kPermissionDenied: return 401;
    case StatusCode::kNotFound: return 404;
    case StatusCode::kResourceExhausted: return 429;
    case StatusCode::kUnavailable: return 503;
    case StatusCode::kCancelled: return 503;
    case StatusCode::kDataLoss: return 500;
    case StatusCode::kInternal: return 500;
  }
  return 500;
}

ApiError api_error_from(const Status& status, std::string param) {
  return {http_status_of(status.code()), status.message(), std::move(param), {}};
}

ApiError api_error_from(const Status& status, TimeLimit ended_by) {
  ApiError error = api_error_from(status);
  if (ended_by == TimeLimit::kQueue) error.code = "queue_timeout";
  if (ended_by == TimeLimit::kDeadline) error.code = "deadline_exceeded";
  return error;
}

std::string_view error_type(int http_status) {
  switch (http_status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    case 503: return "service_unavailable_error";
    default: return http_status >= 500 ? "server_error" : "invalid_request_error";
  }
}

std::string error_body(const ApiError& error) {
  using nlohmann::ordered_json;
  const auto or_null = [](const std::string& text) {
    return text.empty() ? ordered_json(nullptr) : ordered_json(text);
  };
  ordered_json inner;
  inner["message"] = error.message;
  inner["type"] = error_type(error.http_status);
  inner["param"] = or_null(error.param);
  inner["code"] = or_null(error.code);
  ordered_json body;
  body["error"] = std::move(inner);
  return body.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace dunlin
