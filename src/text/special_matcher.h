// Finds the tokens that are matched in text before anything else: control tokens in trusted places,
// user-defined tokens everywhere; the leftmost first, the longest among those, as Hugging Face's
// tokenizers do.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "dunlin/types.h"

namespace dunlin {

class SpecialMatcher {
 public:
  struct Special {
    std::string_view text;  // not empty; must outlive the matcher
    TokenId id;
    bool is_control;
  };
  struct Match {
    std::size_t begin;
    std::size_t end;
    TokenId id;
  };

  SpecialMatcher() = default;
  explicit SpecialMatcher(std::vector<Special> specials);

  // Two ids of one text, if there are such.
  std::optional<std::pair<TokenId, TokenId>> find_duplicate() const;

  bool has_user_defined() const { return has_user_defined_; }

  // The first match in text[begin, end). `trusted`: control tokens count, too. User-defined tokens
  // may reach on to `limit` (>= end), control tokens to `end`.
  std::optional<Match> find(std::string_view text, std::size_t begin, std::size_t end,
                            std::size_t limit, bool trusted) const;

 private:
  std::vector<Special> specials_;                // by text
  std::array<std::uint32_t, 257> first_byte_{};  // texts that start with b: [b] to [b + 1]
  std::array<bool, 256> starts_user_defined_{};
  bool has_user_defined_ = false;
};

}  // namespace dunlin
