// Which path is what, with which methods, and who may ask.
#pragma once

#include <string>
#include <string_view>

#include "server/static_files.h"

namespace dunlin {

enum class Route {
  kChat,              // POST /v1/chat/completions
  kCompletions,       // POST /v1/completions
  kEmbeddings,        // POST /v1/embeddings
  kResetPrefixCache,  // POST /reset_prefix_cache
  kModels,            // GET /v1/models
  kModel,             // GET /v1/models/{id}
  kHealth,            // GET /health
  kVersion,           // GET /version
  kMetrics,           // GET /metrics
  kStatic,            // GET / and the page's files
  kNone,
};

struct RouteMatch {
  Route route = Route::kNone;
  std::string model_id;              // kModel, percent-decoded
  const StaticFile* file = nullptr;  // kStatic
};

// `target` as in the request line; what follows '?' or '#' is ignored.
RouteMatch find_route(std::string_view target);

// For counting: "/v1/chat/completions", "/v1/models/{id}", "static" for any file, "none".
std::string_view path_label(Route route);
// The method where it is one that HTTP knows, else "other".
std::string_view method_label(std::string_view method);

// "POST, OPTIONS" or "GET, HEAD, OPTIONS": for the Allow header.
std::string_view allowed_methods(Route route);
bool is_allowed(Route route, std::string_view method);
// True where the answer is an ApiCall's (api/api_call.h).
bool is_call(Route route);
// True where that call computes with the model.
bool uses_model(Route route);
// True where one of the API keys, if there are any, must be shown.
bool needs_key(Route route);

}  // namespace dunlin
