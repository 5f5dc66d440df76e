// Tokens that are found in text before the model sees it, with Hugging Face's flags: a word of its
// own only, spaces beside it swallowed, looked for in the text as it is or in the normalized one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "dunlin/status.h"
#include "text/joined_text.h"
#include "text/json_view.h"
#include "text/special_matcher.h"

namespace dunlin::hf {

struct AddedToken {
  TokenId id = -1;
  std::string content;        // not empty
  bool is_special = false;    // a control token: only trusted text can name it
  bool single_word = false;   // not beside a word character
  bool strips_left = false;   // takes the spaces in front of it, too
  bool strips_right = false;  // and those behind it
  bool normalized = false;    // looked for behind the normalizer, normalized itself
};

// {"content": .., "special": .., "lstrip": .., ..}, with `id` where the place gives it.
Result<AddedToken> read_added_token(const JsonView& view, TokenId id);

// One of the two groups, with the texts to look for.
class AddedTokenMatcher {
 public:
  // `texts` [tokens.size()]; tokens with an empty text are never found.
  AddedTokenMatcher(std::vector<AddedToken> tokens, std::vector<std::string> texts);
  AddedTokenMatcher(AddedTokenMatcher&&) = delete;  // the matcher's texts are ours

  struct Part {
    std::size_t begin;
    std::size_t end;
    TokenId id;  // -1: ordinary text
  };
  // Gives the parts of `text` in order, none of them empty; control tokens only where `ranges` are
  // trusted.
  void split(std::string_view text, std::span<const TrustRange> ranges,
             FunctionRef<void(Part)> sink) const;

  bool empty() const { return tokens_.empty(); }

 private:
  const AddedToken* find_token(TokenId id) const;

  std::vector<AddedToken> tokens_;  // by id
  std::vector<std::string> texts_;
  SpecialMatcher matcher_;
};

}  // namespace dunlin::hf
