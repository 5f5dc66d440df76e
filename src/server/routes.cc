#include "server/routes.h"

namespace dunlin {
namespace {

// The routes that are one path each.
struct RoutePath {
  Route route;
  std::string_view path;
};
constexpr RoutePath kPaths[] = {
    {Route::kChat, "/v1/chat/completions"}, {Route::kCompletions, "/v1/completions"},
    {Route::kEmbeddings, "/v1/embeddings"}, {Route::kResetPrefixCache, "/reset_prefix_cache"},
    {Route::kModels, "/v1/models"},         {Route::kHealth, "/health"},
    {Route::kVersion, "/version"},          {Route::kMetrics, "/metrics"},
};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// A broken escape stays as it is.
std::string percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
        hex_digit(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool is_post(Route route) {
  return route == Route::kChat || route == Route::kCompletions || route == Route::kEmbeddings ||
         route == Route::kResetPrefixCache;
}

}  // namespace

std::string_view path_label(Route route) {
  for (const RoutePath& row : kPaths)
    if (row.route == route) return row.path;
  return route == Route::kModel ? "/v1/models/{id}" : route == Route::kStatic ? "static" : "none";
}

std::string_view method_label(std::string_view method) {
  for (const std::string_view known : {"GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"})
    if (method == known) return known;
  return "other";
}

RouteMatch find_route(std::string_view target) {
  const std::string_view path = target.substr(0, target.find_first_of("?#"));
  constexpr std::string_view kModelPrefix = "/v1/models/";
  for (const RoutePath& row : kPaths)
    if (path == row.path) return {row.route, {}, nullptr};
  if (path.starts_with(kModelPrefix) && path.size() > kModelPrefix.size())
    return {Route::kModel, percent_decode(path.substr(kModelPrefix.size())), nullptr};
  if (const StaticFile* file = find_static_file(path)) return {Route::kStatic, {}, file};
  return {};
}

std::string_view allowed_methods(Route route) {
  return is_post(route) ? "POST, OPTIONS" : "GET, HEAD, OPTIONS";
}

bool is_allowed(Route route, std::string_view method) {
  return is_post(route) ? method == "POST" : method == "GET" || method == "HEAD";
}

bool is_call(Route route) { return is_post(route); }

bool uses_model(Route route) { return is_call(route) && route != Route::kResetPrefixCache; }

bool needs_key(Route route) { return route != Route::kHealth && route != Route::kStatic; }

}  // namespace dunlin
