#include "text/vocab_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "text/joined_text.h"

namespace dunlin {

bool has_all_utf8_bytes(std::span<const TokenId, 256> byte_ids) {
  for (std::size_t byte = 0; byte <= 0xF4; ++byte)
    if (byte != 0xC0 && byte != 0xC1 && byte_ids[byte] < 0) return false;
  return true;
}

VocabTokenizer::VocabTokenizer(const Vocab& vocab, TokenTable table, bool adds_bos)
    : table_(std::move(table)),
      types_(vocab.types),
      bos_id_(vocab.bos_id),
      eos_id_(vocab.eos_id),
      unknown_id_(vocab.unknown_id),
      eos_ids_(vocab.eos_ids) {
  DUNLIN_CHECK(table_.size() == vocab.size() && types_.size() == vocab.tokens.size(),
               "one text and one type for each token");
  if (adds_bos && bos_id_ >= 0) prefix_ids_.push_back(bos_id_);
  if (vocab.adds_eos && eos_id_ >= 0) suffix_ids_.push_back(eos_id_);
  if (vocab.prefix_ids) prefix_ids_ = *vocab.prefix_ids;
  if (vocab.suffix_ids) suffix_ids_ = *vocab.suffix_ids;
  std::vector<SpecialMatcher::Special> specials;
  for (TokenId id = 0; id < table_.size(); ++id) {
    if (table_.text(id).empty()) continue;
    longest_text_ = std::max(longest_text_, table_.text(id).size());
    const bool is_user_defined = type(id) == TokenType::kUserDefined;
    if (!is_user_defined && !is_control(id)) continue;
    specials.push_back({table_.text(id), id, !is_user_defined});
  }
  specials_ = SpecialMatcher(std::move(specials));
}

Outcome VocabTokenizer::check_specials() const {
  const auto twins = specials_.find_duplicate();
  if (!twins) return {};
  return invalid(fmt::format("tokenizer.ggml.tokens: tokens {} and {} are both '{}'", twins->first,
                             twins->second, table_.text(twins->first)));
}

bool VocabTokenizer::is_control(TokenId id) const {
  return is_id(id) && (type(id) == TokenType::kControl || type(id) == TokenType::kUnknown);
}

std::vector<TokenId> VocabTokenizer::encode(std::span<const TextSegment> segments) const {
  std::string storage;
  const JoinedText joined = join_segments(segments, storage);
  const std::string_view text = joined.text;
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 8);
  MergeWorkspace work;
  std::size_t plain_begin = 0;  // text from here on has no ids yet
  const auto encode_until = [&](std::size_t end) {
    if (end > plain_begin) {
      const std::string_view plain = text.substr(plain_begin, end - plain_begin);
      encode_plain(plain, plain_begin == 0, work, ids);
    }
    plain_begin = end;
  };
  std::size_t pos = 0;
  for (const TrustRange& range : joined.ranges) {
    if (!range.trusted && !specials_.has_user_defined()) {
      pos = std::max(pos, range.end);
      continue;
    }
    while (pos < range.end) {
      const auto match = specials_.find(text, pos, range.end, text.size(), range.trusted);
      if (!match) break;
      encode_until(match->begin);
      ids.push_back(match->id);
      pos = plain_begin = match->end;
    }
    pos = std::max(pos, range.end);
  }
  encode_until(text.size());
  return ids;
}

}  // namespace dunlin
