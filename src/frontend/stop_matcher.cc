#include "frontend/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace dunlin {
namespace {

std::vector<int> make_fallback(std::string_view text) {
  std::vector<int> fallback(text.size(), 0);
  int border = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    while (border > 0 && text[i] != text[static_cast<std::size_t>(border)])
      border = fallback[static_cast<std::size_t>(border - 1)];
    if (text[i] == text[static_cast<std::size_t>(border)]) ++border;
    fallback[i] = border;
  }
  return fallback;
}

}  // namespace

StopMatcher::StopMatcher(StopSpec spec) : spec_(std::move(spec)) {
  for (const std::string& text : spec_.strings) {
    if (!text.empty()) patterns_.push_back({text, make_fallback(text), 0});
  }
}

std::string StopMatcher::push(std::string_view piece, bool armed) {
  DUNLIN_CHECK(!matched_, "text pushed behind a stop string");
  if (patterns_.empty()) return std::string(piece);
  for (std::size_t i = 0; i < piece.size(); ++i) {
    const Pattern* met = nullptr;
    for (Pattern& pattern : patterns_) {
      int state = pattern.state;
      while (state > 0 && pattern.text[static_cast<std::size_t>(state)] != piece[i])
        state = pattern.fallback[static_cast<std::size_t>(state - 1)];
      if (pattern.text[static_cast<std::size_t>(state)] == piece[i]) ++state;
      if (state == static_cast<int>(pattern.text.size())) {
        if (armed && (!met || pattern.text.size() > met->text.size())) met = &pattern;
        state = pattern.fallback[static_cast<std::size_t>(state - 1)];
      }
      pattern.state = state;
    }
    held_ += piece[i];
    if (met) {
      matched_ = met->text;
      if (!spec_.include_in_output) held_.resize(held_.size() - met->text.size());
      return std::exchange(held_, {});
    }
  }
  int keep = 0;
  for (const Pattern& pattern : patterns_) keep = std::max(keep, pattern.state);
  const std::size_t certain = held_.size() - static_cast<std::size_t>(keep);
  std::string out = held_.substr(0, certain);
  held_.erase(0, certain);
  return out;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace dunlin
