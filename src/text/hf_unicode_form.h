// Unicode normalization (UAX 15) as a normalizer: NFC, NFD, NFKC, NFKD.
#pragma once

#include <vector>

#include "text/hf_normalizer.h"

namespace dunlin::hf {

class UnicodeForm final : public NormalizerStep {
 public:
  UnicodeForm(bool compatibility, bool compose)
      : compatibility_(compatibility), compose_(compose) {}
  // O(n log n) for any text.
  void apply(NormalizedText& text, ByteRegex::Scratch& scratch) const override;

 private:
  void decompose(std::string_view chunk, std::vector<int>& code_points) const;

  bool compatibility_;
  bool compose_;
};

}  // namespace dunlin::hf
