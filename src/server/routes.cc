#include "server/routes.h"

namespace dunlin {
namespace {

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
  switch (route) {
    case Route::kChat: return "/v1/chat/completions";
    case Route::kCompletions: return "/v1/completions";
    case Route::kEmbeddings: return "/v1/embeddings";
    case Route::kResetPrefixCache: return "/reset_prefix_cache";
    case Route::kModels: return "/v1/models";
    case Route::kModel: return "/v1/models/{id}";
    case Route::kHealth: return "/health";
    case Route::kVersion: return "/version";
    case Route::kMetrics: return "/metrics";
    case Route::kStatic: return "static";
    case Route::kNone: return "none";
  }
  return "none";
}

std::string_view method_label(std::string_view method) {
  for (const std::string_view known : {"GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"})
    if (method == known) return known;
  return "other";
}

RouteMatch find_route(std::string_view target) {
  const std::string_view path = target.substr(0, target.find_first_of("?#"));
  constexpr std::string_view kModelPrefix = "/v1/models/";
  if (path == "/v1/chat/completions") return {Route::kChat, {}, nullptr};
  if (path == "/v1/completions") return {Route::kCompletions, {}, nullptr};
  if (path == "/v1/embeddings") return {Route::kEmbeddings, {}, nullptr};
  if (path == "/v1/models") return {Route::kModels, {}, nullptr};
  if (path == "/reset_prefix_cache") return {Route::kResetPrefixCache, {}, nullptr};
  if (path == "/health") return {Route::kHealth, {}, nullptr};
  if (path == "/version") return {Route::kVersion, {}, nullptr};
  if (path == "/metrics") return {Route::kMetrics, {}, nullptr};
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

bool needs_key(Route route) { return route != Route::kHealth && route != Route::kStatic; }

}  // namespace dunlin
