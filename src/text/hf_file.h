// tokenizer.json read as untrusted JSON. The two large lists are kept flat, since a tree of half a
// million small nodes takes seconds and gigabytes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "dunlin/status.h"
#include "dunlin/types.h"

namespace dunlin::hf {

inline constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;
inline constexpr TokenId kMaxTokenId = (1 << 22) - 1;

struct TokenizerFile {
  nlohmann::json root;  // without model.vocab and model.merges; an object
  std::vector<std::pair<std::string, double>> vocab;        // and id, or score where scored
  std::vector<std::pair<std::string, std::string>> merges;  // the first is merged first
  bool has_vocab = false;
  bool has_merges = false;
  bool vocab_is_scored = false;  // [["text", score], ...], whose index is the id

  // kInvalidArgument with the place: not JSON, too large, too deep, or an entry of the wrong type.
  static Result<TokenizerFile> parse(std::string_view json);
};

// Any smaller file of the folder, as an object, under the same limits.
Result<nlohmann::json> parse_json_object(std::string_view json);

}  // namespace dunlin::hf
