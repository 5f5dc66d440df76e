// SentencePiece's BPE ("llama" in GGUF): spaces become U+2581, characters merge as long as two
// neighbours make a token, the best score first; a character without a token is spelled in byte
// tokens (Kudo & Richardson 2018).
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "text/vocab_tokenizer.h"

namespace dunlin {

class SpmTokenizer final : public VocabTokenizer {
 public:
  // kInvalidArgument naming the key where tokens are there twice, scores are missing or a byte
  // token is not "<0xHH>". Only normal tokens are made by merging, so that ordinary text never
  // becomes a control token. The views of `vocab` are not kept.
  static Result<std::unique_ptr<Tokenizer>> make(const Vocab& vocab);

  std::string token_bytes(TokenId id, bool render_special) const override;
  std::size_t fewest_tokens(std::string_view text) const override;
  bool strips_leading_space() const override {
    return prepend_scheme_ ? *prepend_scheme_ != PrependScheme::kNever : adds_space_prefix_;
  }

 private:
  SpmTokenizer(const Vocab& vocab, TokenTable table);
  Outcome read_byte_tokens();
  void find_inner_spaces();

  void encode_plain(std::string_view text, bool at_start, MergeWorkspace& work,
                    std::vector<TokenId>& ids) const override;
  bool prepends_space(std::string_view text, bool at_start) const;
  void encode_piece(std::string_view piece, MergeWorkspace& work, std::vector<TokenId>& ids) const;
  void merge_piece(std::string_view piece, MergeWorkspace& work) const;
  void spell(std::string_view character, std::vector<TokenId>& ids) const;

  bool adds_space_prefix_;
  std::optional<PrependScheme> prepend_scheme_;
  std::vector<std::uint32_t> ranks_;  // [vocab_size] lower for a better score
  std::array<TokenId, 256> byte_ids_;
  std::vector<std::uint8_t> byte_of_;  // [vocab_size] where the type is kByte
  // Bytes that stand before U+2581 inside some token. Behind any other, a space begins a piece
  // that nothing merges with what is before it.
  std::array<bool, 256> before_inner_space_{};
  WholeTokenCache whole_tokens_;
};

}  // namespace dunlin
