// What a request is answered before and besides the model: refusals, the model list, health,
// metrics, files. No sockets here.
#pragma once

#include <optional>
#include <string_view>

#include "server/http_response.h"
#include "server/routes.h"

namespace dunlin {

struct ServerContext;

// A request's line and the headers that matter; views into the parser.
struct RequestView {
  std::string_view method;
  std::string_view target;
  std::string_view host;
  std::string_view origin;
  std::string_view authorization;
  std::string_view transfer_encoding;
  std::string_view if_none_match;
  bool http_1_0 = false;
  std::optional<int> api_key_idx;  // which of ServerConfig::api_keys was shown
};

// Looks at the headers, before any body is read: foreign hosts and origins, unknown transfer
// codings and paths, wrong methods, missing keys; OPTIONS is answered here, too. nullopt: go on.
std::optional<HttpResponse> check_request(const ServerContext& context, const RequestView& request,
                                          const RouteMatch& match);

// Any route but those that use the model.
HttpResponse answer_simple(const ServerContext& context, const RequestView& request,
                           const RouteMatch& match);

}  // namespace dunlin
