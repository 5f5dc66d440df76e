// BPE over characters as tokenizer.json states it. Byte-level BPE is this too: its pre-tokenizer
// writes bytes as characters.
#pragma once

#include <array>

#include "text/token_model.h"
#include "text/token_table.h"
#include "text/vocab_tokenizer.h"

namespace dunlin::hf {

struct BpeOptions {
  TokenId unknown_id = -1;  // -1: unknown characters leave nothing
  bool fuse_unknown = false;
  std::array<TokenId, 256> byte_ids;  // of "<0xHH>" where bytes serve as a fallback, or -1
  std::string continuing_prefix;      // of all characters of a piece but the first
  std::string end_suffix;             // of the last one
  bool whole_pieces_first = false;    // a piece that is a token is that token ("ignore_merges")
  bool merges_plain_only = true;      // no merge names an unknown or a byte token
};

class BpeModel final : public TokenModel {
 public:
  // `table` outlives the model; tokens that may be used are findable.
  BpeModel(const TokenTable& table, MergeTable merges, BpeOptions options);

  void encode(std::string_view piece, EncodeScratch& scratch,
              std::vector<TokenId>& ids) const override;

 private:
  void find_inner_spaces();
  void encode_part(std::string_view part, MergeWorkspace& work, std::vector<TokenId>& ids) const;
  void start_symbols(std::string_view part, MergeWorkspace& work) const;
  bool append_bytes(std::string_view character, std::uint32_t begin, MergeWorkspace& work) const;
  TokenId find_character(std::string_view part, std::uint32_t begin, std::uint32_t end) const;

  const TokenTable& table_;
  MergeTable merges_;
  BpeOptions options_;
  bool has_affixes_;
  std::array<TokenId, 0x180> character_ids_;  // of the first code points, those of bytes included
  // Whether a piece may be cut in front of U+2581: nothing merges across, except behind these
  // bytes.
  bool cuts_at_spaces_;
  std::array<bool, 256> before_inner_space_{};
  WholeTokenCache whole_tokens_;
};

}  // namespace dunlin::hf
