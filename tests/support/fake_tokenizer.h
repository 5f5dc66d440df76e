// A tokenizer for tests: one token a byte, and two control tokens. What a token's bytes are is
// plain to see, and characters and stop strings are cut over tokens as badly as can be.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace dunlin {

class FakeTokenizer final : public Tokenizer {
 public:
  static constexpr TokenId kBos = 256;  // "<|bos|>"
  static constexpr TokenId kEnd = 257;  // "<|end|>"

  std::vector<TokenId> encode(std::span<const TextSegment> segments) const override {
    std::vector<TokenId> ids;
    for (const TextSegment& segment : segments) {
      for (std::size_t i = 0; i < segment.text.size();) {
        if (segment.trusted && segment.text.substr(i).starts_with("<|end|>")) {
          ids.push_back(kEnd);
          i += 7;
        } else if (segment.trusted && segment.text.substr(i).starts_with("<|bos|>")) {
          ids.push_back(kBos);
          i += 7;
        } else {
          ids.push_back(static_cast<unsigned char>(segment.text[i++]));
        }
      }
    }
    return ids;
  }
  using Tokenizer::encode;

  std::string token_bytes(TokenId id, bool render_special = false) const override {
    if (id == kBos) return render_special ? "<|bos|>" : "";
    if (id == kEnd) return render_special ? "<|end|>" : "";
    return std::string(1, static_cast<char>(id));
  }

  std::size_t fewest_tokens(std::string_view text) const override {
    return text.size() / 7;  // a control token's name
  }
  int vocab_size() const override { return 258; }
  bool is_control(TokenId id) const override { return id >= kBos; }
  std::span<const TokenId> prefix_ids() const override { return prefix_; }
  std::span<const TokenId> suffix_ids() const override { return {}; }
  std::span<const TokenId> eos_ids() const override { return eos_; }
  TokenId bos_id() const override { return kBos; }
  TokenId eos_id() const override { return kEnd; }
  bool strips_leading_space() const override { return false; }

 private:
  std::array<TokenId, 1> prefix_{kBos};
  std::array<TokenId, 1> eos_{kEnd};
};

}  // namespace dunlin
