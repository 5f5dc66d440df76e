#include "text/wordpiece_model.h"

#include <algorithm>

namespace dunlin::hf {
namespace {

bool continues_character(char c) { return (c & 0xC0) == 0x80; }

}  // namespace

void WordPieceModel::encode(std::string_view piece, EncodeScratch& scratch,
                            std::vector<TokenId>& ids) const {
  const auto num_characters = static_cast<std::size_t>(
      std::count_if(piece.begin(), piece.end(), [](char c) { return !continues_character(c); }));
  if (num_characters > max_word_characters_) return ids.push_back(unknown_id_);

  const std::size_t num_before = ids.size();
  // The rest of the word, behind the prefix once a token was found.
  std::string& rest = scratch.text;
  rest = piece;
  std::size_t prefix = 0;
  while (rest.size() > prefix) {
    TokenId found = -1;
    std::size_t end = std::min(rest.size(), table_.max_length());
    for (; end > prefix; --end) {
      if (end < rest.size() && continues_character(rest[end])) continue;
      found = table_.find(std::string_view(rest).substr(0, end));
      if (found >= 0) break;
    }
    if (found < 0) {
      ids.resize(num_before);
      return ids.push_back(unknown_id_);
    }
    ids.push_back(found);
    rest.replace(0, end, continuing_prefix_);
    prefix = continuing_prefix_.size();
  }
}

}  // namespace dunlin::hf
