// What byte-pair and SentencePiece tokenizers share: the vocabulary's index, special tokens in
// trusted text, and the metadata.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "text/merge.h"
#include "text/special_matcher.h"
#include "text/token_table.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

namespace dunlin {

class VocabTokenizer : public Tokenizer {
 public:
  VocabTokenizer(const VocabTokenizer&) = delete;  // the matcher's texts are the table's
  VocabTokenizer& operator=(const VocabTokenizer&) = delete;

  using Tokenizer::encode;
  std::vector<TokenId> encode(std::span<const TextSegment> segments) const final;

  int vocab_size() const final { return table_.size(); }
  bool is_control(TokenId id) const final;
  std::span<const TokenId> prefix_ids() const final { return prefix_ids_; }
  std::span<const TokenId> suffix_ids() const final { return suffix_ids_; }
  std::span<const TokenId> eos_ids() const final { return eos_ids_; }
  TokenId bos_id() const final { return bos_id_; }
  TokenId eos_id() const final { return eos_id_; }

 protected:
  // `table` holds the texts of all of the vocabulary's tokens, in order.
  VocabTokenizer(const Vocab& vocab, TokenTable table, bool adds_bos);

  // kInvalidArgument where two special tokens have one text.
  Outcome check_specials() const;

  // Ids of `text`, valid UTF-8 without special tokens, not empty. `at_start`: nothing is before it.
  virtual void encode_plain(std::string_view text, bool at_start, MergeWorkspace& work,
                            std::vector<TokenId>& ids) const = 0;

  bool is_id(TokenId id) const { return id >= 0 && id < table_.size(); }
  TokenType type(TokenId id) const { return types_[static_cast<std::size_t>(id)]; }
  const TokenTable& table() const { return table_; }
  TokenId unknown_id() const { return unknown_id_; }
  std::size_t longest_text() const { return longest_text_; }  // of all tokens, bytes

 private:
  TokenTable table_;
  std::vector<TokenType> types_;
  SpecialMatcher specials_;
  TokenId bos_id_;
  TokenId eos_id_;
  TokenId unknown_id_;
  std::size_t longest_text_ = 0;
  std::vector<TokenId> prefix_ids_;
  std::vector<TokenId> suffix_ids_;
  std::vector<TokenId> eos_ids_;
};

// Whether each byte that valid UTF-8 can have is a token; `byte_ids` holds -1 where it is none.
bool has_all_utf8_bytes(std::span<const TokenId, 256> byte_ids);

// Whether a token is what merging its own text gives, found out when it is first asked: a piece
// that is such a token needs no merging. One byte a token; racing threads write the same answer.
class WholeTokenCache {
 public:
  explicit WholeTokenCache(int vocab_size)
      : states_(
            std::make_unique<std::atomic<std::uint8_t>[]>(static_cast<std::size_t>(vocab_size))) {}

  enum State : std::uint8_t { kUnasked, kWhole, kSplit };
  State get(TokenId id) const {
    return static_cast<State>(
        states_[static_cast<std::size_t>(id)].load(std::memory_order_relaxed));
  }
  void set(TokenId id, bool whole) const {
    states_[static_cast<std::size_t>(id)].store(whole ? kWhole : kSplit, std::memory_order_relaxed);
  }

 private:
  std::unique_ptr<std::atomic<std::uint8_t>[]> states_;
};

}  // namespace dunlin
