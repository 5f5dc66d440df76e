#include "api/json_body.h"

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dunlin {
namespace {

using nlohmann::ordered_json;

// Brackets and colons outside strings, counted before the parser sees the body.
ApiResult<void> check_shape(std::string_view body) {
  std::array<std::size_t, kMaxJsonDepth + 1> keys{};
  std::size_t total_keys = 0;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth)
        return api_fail({400, fmt::format("the body nests deeper than {} levels at byte {}",
                                          kMaxJsonDepth, i)});
      keys[static_cast<std::size_t>(depth)] = 0;
    } else if (c == ']' || c == '}') {
      if (depth > 0) --depth;
    } else if (c == ':') {
      if (++keys[static_cast<std::size_t>(depth)] > kMaxObjectKeys)
        return api_fail({400, fmt::format("an object in the body has more than {} keys at byte {}",
                                          kMaxObjectKeys, i)});
      if (++total_keys > kMaxTotalKeys)
        return api_fail({400, fmt::format("the body has more than {} keys", kMaxTotalKeys)});
    }
  }
  return {};
}

}  // namespace

ApiResult<std::shared_ptr<const ordered_json>> parse_json_body(std::string_view body) {
  if (body.empty()) return api_fail({400, "the body is empty; send a JSON object"});
  if (auto shape = check_shape(body); !shape) return api_fail(std::move(shape).error());
  try {
    auto json = std::make_shared<ordered_json>(ordered_json::parse(body.begin(), body.end()));
    if (!json->is_object())
      return api_fail(
          {400, fmt::format("the body is a JSON {}; send a JSON object", json->type_name())});
    return json;
  } catch (const ordered_json::parse_error& error) {
    return api_fail({400, fmt::format("the body is not valid JSON in UTF-8: it goes wrong at byte "
                                      "{} of {}",
                                      error.byte, body.size())});
  } catch (const ordered_json::exception&) {
    return api_fail({400, "the body holds a number that is too large"});
  }
}

}  // namespace dunlin
