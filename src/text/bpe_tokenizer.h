// Byte-level BPE ("gpt2" in GGUF): text is cut into pieces by the pre-tokenizer's expressions, a
// piece's bytes are merged by a list of ranked pairs. Every byte that valid UTF-8 can have is a
// token in a sound vocabulary, so decoding gives the text back.
#pragma once

#include <array>
#include <memory>

#include "text/pretokenizer.h"
#include "text/vocab_tokenizer.h"

namespace dunlin {

class BpeTokenizer final : public VocabTokenizer {
 public:
  // kInvalidArgument naming the key where tokens are there twice, or a merge is not "LEFT RIGHT"
  // or names what is no token. Merges that name control or user-defined tokens are left out:
  // ordinary text never becomes one. The views of `vocab` are not kept.
  static Result<std::unique_ptr<Tokenizer>> make(const Vocab& vocab);

  std::string token_bytes(TokenId id, bool render_special) const override;
  bool strips_leading_space() const override { return false; }
  std::size_t fewest_tokens(std::string_view text) const override;

 private:
  BpeTokenizer(const Vocab& vocab, TokenTable table, MergeTable merges, PreTokenizer pretokenizer,
               bool whole_pieces_first, bool adds_bos);

  void encode_plain(std::string_view text, bool at_start, MergeWorkspace& work,
                    std::vector<TokenId>& ids) const override;
  void encode_piece(std::string_view piece, MergeWorkspace& work, std::vector<TokenId>& ids) const;
  void merge_piece(std::string_view piece, MergeWorkspace& work) const;

  MergeTable merges_;
  PreTokenizer pretokenizer_;
  std::array<TokenId, 256> byte_ids_;
  bool whole_pieces_first_;
  WholeTokenCache whole_tokens_;
};

}  // namespace dunlin
