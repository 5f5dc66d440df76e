#include "server/request_handler.h"

#include <fmt/format.h>

#include "api/openai_format.h"
#include "base/ascii.h"
#include "cpu/process_usage.h"
#include "server/access.h"
#include "server/server_context.h"

namespace dunlin {
namespace {

HttpResponse json_response(std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  return response;
}

HttpResponse file_response(const StaticFile& file, std::string_view if_none_match) {
  HttpResponse response;
  response.headers = {{"ETag", std::string(file.etag)},
                      {"Cache-Control", "no-cache"},
                      {"Content-Security-Policy", std::string(kContentSecurityPolicy)},
                      {"Referrer-Policy", "no-referrer"}};
  if (if_none_match == file.etag) {
    response.status = 304;
    return response;
  }
  response.content_type = file.content_type;
  response.static_body = file.content;
  return response;
}

ModelInfo model_info(const ServerContext& context) {
  return {context.session.config().model_name, context.start_unix_s,
          context.session.context_length()};
}

}  // namespace

std::optional<HttpResponse> check_request(const ServerContext& context, const RequestView& request,
                                          const RouteMatch& match) {
  const ServerConfig& config = context.config;
  if (request.host.empty() && !request.http_1_0)
    return error_response({400, "the Host header is missing"});
  // Where another reader of these bytes might see another end of the body.
  if (!request.transfer_encoding.empty() &&
      (request.http_1_0 || !equal_but_case(request.transfer_encoding, "chunked")))
    return error_response({501, fmt::format("Transfer-Encoding '{}' is not understood here; send "
                                            "the body in HTTP/1.1 chunks or with a Content-Length",
                                            request.transfer_encoding)});
  if (context.is_loopback) {
    if (!request.host.empty() && !is_trusted_host(request.host, config.host))
      return error_response({403, fmt::format("the Host header says '{}', but only this machine is "
                                              "served; use 127.0.0.1 or localhost",
                                              request.host)});
    if (!is_trusted_origin(request.origin, config.host))
      return error_response(
          {403, fmt::format("requests of web pages of '{}' are not taken", request.origin)});
  }
  if (request.method == "OPTIONS" && (match.route != Route::kNone || request.target == "*")) {
    HttpResponse response;
    response.status = 204;
    response.headers.emplace_back("Allow", match.route == Route::kNone
                                               ? "GET, HEAD, POST, OPTIONS"
                                               : allowed_methods(match.route));
    return response;
  }
  if (!config.api_keys.empty() && needs_key(match.route) && !request.api_key_idx) {
    return error_response({401,
                           request.authorization.empty()
                               ? "an API key is needed; send it as 'Authorization: Bearer KEY'"
                               : "the API key is wrong",
                           {},
                           "invalid_api_key"});
  }
  if (match.route == Route::kNone) {
    return error_response({404,
                           fmt::format("there is nothing at '{}'; the API is at "
                                       "/v1/chat/completions, /v1/completions, /v1/embeddings and "
                                       "/v1/models",
                                       request.target),
                           {},
                           "not_found"});
  }
  if (!is_allowed(match.route, request.method)) {
    HttpResponse response =
        error_response({405, fmt::format("{} is not allowed here; use {}", request.method,
                                         allowed_methods(match.route))});
    response.headers.emplace_back("Allow", allowed_methods(match.route));
    return response;
  }
  if (is_call(match.route) && context.draining)
    return error_response({503, "the server is shutting down"});
  return std::nullopt;
}

HttpResponse answer_simple(const ServerContext& context, const RequestView& request,
                           const RouteMatch& match) {
  switch (match.route) {
    case Route::kModels: return json_response(format_model_list(model_info(context)));
    case Route::kModel: {
      const ModelInfo model = model_info(context);
      if (match.model_id == model.name) return json_response(format_model(model));
      return error_response(
          {404,
           fmt::format("the model '{}' is not served here; '{}' is", match.model_id, model.name),
           "model", "model_not_found"});
    }
    case Route::kHealth: {
      HttpResponse response =
          json_response(context.draining ? R"({"status":"shutting down"})" : R"({"status":"ok"})");
      response.status = context.draining ? 503 : 200;
      return response;
    }
    case Route::kVersion:
      return json_response(fmt::format(R"({{"version":"{}"}})", context.config.version));
    case Route::kMetrics: {
      HttpResponse response = json_response(context.metrics.render(
          context.session.engine().stats(), context.session.engine().config(), process_usage(),
          context.session.memory().plan));
      response.content_type = "text/plain; version=0.0.4; charset=utf-8";
      return response;
    }
    case Route::kStatic: return file_response(*match.file, request.if_none_match);
    default: return error_response({404, "there is nothing here"});
  }
}

}  // namespace dunlin
