// The API keys of a server: who may ask, under which name, for which share of the tokens.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"

namespace dunlin {

struct ApiKey {
  std::string name;  // may be logged; the key may not
  std::string key;
  double share = 1;  // of the tokens, beside those of the others that have requests
};

inline constexpr std::size_t kMaxApiKeys = 1024;

// A file of lines "NAME KEY [SHARE]"; empty lines and those that begin with # count for nothing.
// kPermissionDenied where other users may read or change it, kInvalidArgument with the line's
// number where something is wrong; no message quotes a key.
Result<std::vector<ApiKey>> read_api_keys(const std::string& path);

// The same from a file's text; `name` is for messages.
Result<std::vector<ApiKey>> parse_api_keys(std::string_view text, std::string_view name);

// Which of the keys "Bearer KEY" shows. Takes the same time whichever it is, and where it is none.
std::optional<int> find_api_key(const std::vector<ApiKey>& keys, std::string_view authorization);

}  // namespace dunlin
