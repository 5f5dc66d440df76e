#include "text/added_tokens.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/hf_unicode.h"

namespace dunlin::hf {
namespace {

char32_t last_character(std::string_view text) {
  std::size_t pos = text.size() - 1;
  while (pos > 0 && (text[pos] & 0xC0) == 0x80) --pos;
  return decode_valid_utf8(text.data() + pos);
}

bool ends_in_word(std::string_view text) {
  return !text.empty() && word_characters().contains(last_character(text));
}

bool starts_in_word(std::string_view text) {
  return !text.empty() && word_characters().contains(decode_valid_utf8(&text[0]));
}

std::size_t skip_spaces(std::string_view text, std::size_t pos) {
  while (pos < text.size() && spaces().contains(decode_valid_utf8(text.data() + pos))) {
    pos += static_cast<std::size_t>(utf8_length(static_cast<unsigned char>(text[pos])));
  }
  return pos;
}

// Where the spaces that end at `end` begin; not before `begin`, even where `end` is.
std::size_t skip_spaces_back(std::string_view text, std::size_t begin, std::size_t end) {
  while (end > begin) {
    const char32_t c = last_character(text.substr(0, end));
    if (!spaces().contains(c)) break;
    end -= c < 0x80 ? 1u : c < 0x800 ? 2u : 3u;  // no space is longer
  }
  return std::max(begin, end);
}

}  // namespace

Result<AddedToken> read_added_token(const JsonView& view, TokenId id) {
  AddedToken token;
  token.id = id;
  DUNLIN_ASSIGN(content, view.string("content"));
  if (content.empty()) return view.error("content must not be empty");
  token.content = std::move(content);
  DUNLIN_ASSIGN(special, view.boolean_or("special", false));
  DUNLIN_ASSIGN(single_word, view.boolean_or("single_word", false));
  DUNLIN_ASSIGN(lstrip, view.boolean_or("lstrip", false));
  DUNLIN_ASSIGN(rstrip, view.boolean_or("rstrip", false));
  DUNLIN_ASSIGN(normalized, view.boolean_or("normalized", !special));
  token.is_special = special;
  token.single_word = single_word;
  token.strips_left = lstrip;
  token.strips_right = rstrip;
  token.normalized = normalized;
  return token;
}

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens, std::vector<std::string> texts)
    : tokens_(std::move(tokens)), texts_(std::move(texts)) {
  std::vector<SpecialMatcher::Special> specials;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (texts_[i].empty()) continue;
    specials.push_back({texts_[i], tokens_[i].id, tokens_[i].is_special});
  }
  matcher_ = SpecialMatcher(std::move(specials));
  std::sort(tokens_.begin(), tokens_.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
}

const AddedToken* AddedTokenMatcher::find_token(TokenId id) const {
  const auto found = std::lower_bound(tokens_.begin(), tokens_.end(), id,
                                      [](const AddedToken& a, TokenId b) { return a.id < b; });
  return &*found;
}

void AddedTokenMatcher::split(std::string_view text, std::span<const TrustRange> ranges,
                              FunctionRef<void(Part)> sink) const {
  std::size_t given = 0;  // text before here has been given out
  std::size_t pos = 0;
  for (const TrustRange& range : ranges) {
    while (pos < range.end && (range.trusted || matcher_.has_user_defined())) {
      const auto match = matcher_.find(text, pos, range.end, text.size(), range.trusted);
      if (!match) break;
      pos = match->end;
      const AddedToken& token = *find_token(match->id);
      if (token.single_word &&
          (ends_in_word(text.substr(0, match->begin)) || starts_in_word(text.substr(match->end)))) {
        continue;
      }
      const std::size_t begin =
          token.strips_left ? skip_spaces_back(text, given, match->begin) : match->begin;
      const std::size_t end = token.strips_right ? skip_spaces(text, match->end) : match->end;
      // All of it may have been swallowed by the token before.
      if (begin >= end) continue;
      if (begin > given) sink({given, begin, -1});
      sink({begin, end, match->id});
      given = std::max(given, end);
    }
    pos = std::max(pos, range.end);
  }
  if (given < text.size()) sink({given, text.size(), -1});
}

}  // namespace dunlin::hf
