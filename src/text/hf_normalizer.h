// Hugging Face's normalizers: what happens to text before it is cut into pieces. Types: Sequence,
// NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, BertNormalizer,
// Precompiled (SentencePiece's character map), Nmt, ByteLevel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dunlin/status.h"
#include "text/byte_regex.h"
#include "text/joined_text.h"
#include "text/json_view.h"

namespace dunlin::hf {

// Text on its way through the normalizers.
struct NormalizedText {
  std::string text;                // valid UTF-8
  std::vector<TrustRange> ranges;  // of `text`; a character made of both kinds is not trusted
  bool at_start;                   // its first character comes from the start of the whole text
};

class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;
  virtual void apply(NormalizedText& text, ByteRegex::Scratch& scratch) const = 0;
  virtual std::size_t growth() const { return 1; }  // text/growth.h
};

class Normalizer {
 public:
  Normalizer() = default;  // changes nothing
  // `file` is the root of tokenizer.json. kInvalidArgument naming the place and, for an unknown
  // type, what is supported.
  static Result<Normalizer> make(const JsonView& file);

  void apply(NormalizedText& text, ByteRegex::Scratch& scratch) const {
    for (const auto& step : steps_) step->apply(text, scratch);
  }
  bool empty() const { return steps_.empty(); }

 private:
  std::vector<std::unique_ptr<const NormalizerStep>> steps_;
};

}  // namespace dunlin::hf
