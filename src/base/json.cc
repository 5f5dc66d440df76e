#include "base/json.h"

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/quote.h"

namespace dunlin {
namespace {

using nlohmann::json;

// The first byte where brackets nest deeper than `max_depth`, npos: nowhere. Runs before the
// parser, whose memory grows with the depth.
std::size_t first_too_deep(std::string_view text, int max_depth) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > max_depth) return i;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return std::string_view::npos;
}

// Keeps the keys of the objects that are open, and the first that came twice.
class DuplicateFinder {
 public:
  bool operator()(int /*depth*/, json::parse_event_t event, const json& value) {
    if (event == json::parse_event_t::object_start) open_.emplace_back();
    if (event == json::parse_event_t::object_end) open_.pop_back();
    if (event == json::parse_event_t::key && duplicate_.empty()) {
      const auto& key = value.get_ref<const std::string&>();
      if (!open_.back().insert(key).second) duplicate_ = quote_for_message(key);
    }
    return true;
  }
  const std::string& duplicate() const { return duplicate_; }

 private:
  std::vector<std::set<std::string>> open_;
  std::string duplicate_;
};

}  // namespace

Result<json> parse_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return invalid(fmt::format("has {} bytes of JSON, more than the limit of {}", text.size(),
                               limits.max_bytes));
  }
  if (const std::size_t at = first_too_deep(text, limits.max_depth); at != text.npos) {
    return invalid(fmt::format("nests deeper than {} levels at byte {}", limits.max_depth, at));
  }
  try {
    DuplicateFinder finder;
    json value = json::parse(text.begin(), text.end(), std::ref(finder));
    if (!finder.duplicate().empty()) {
      return invalid(fmt::format("has the key {} twice in one object", finder.duplicate()));
    }
    return value;
  } catch (const json::parse_error& error) {
    return invalid(fmt::format("is not valid JSON in UTF-8: it goes wrong at byte {} of {}",
                               error.byte, text.size()));
  } catch (const json::exception&) {
    return invalid("holds a number that is too large");
  }
}

}  // namespace dunlin
