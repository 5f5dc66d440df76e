// SentencePiece's precompiled map of characters (the normalizer "Precompiled"): a double-array
// trie of keys (darts-clone's layout) and a block of replacements that end with NUL.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/hf_normalizer.h"

namespace dunlin::hf {

class Charsmap final : public NormalizerStep {
 public:
  // `encoded` is base64. kInvalidArgument where it is not, or sizes don't fit.
  static Result<Charsmap> make(std::string_view encoded);

  // By extended grapheme clusters below six bytes, then by characters, as the reference does; the
  // shortest key that begins a cluster replaces all of it.
  void apply(NormalizedText& text, ByteRegex::Scratch& scratch) const override;
  std::size_t growth() const override;

 private:
  Charsmap(std::vector<std::uint32_t> trie, std::string replacements)
      : trie_(std::move(trie)), replacements_(std::move(replacements)) {}
  std::optional<std::string_view> find(std::string_view key) const;

  std::vector<std::uint32_t> trie_;
  std::string replacements_;
};

}  // namespace dunlin::hf
