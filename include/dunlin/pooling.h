// How a text's embedding is made.
#pragma once

namespace dunlin {

// Which hidden states of a text, behind the model's last norm, become its embedding. The numbers
// are GGUF's (pooling_type).
enum class Pooling {
  kNone = 0,  // none: the text is continued
  kMean = 1,  // the mean of all tokens'
  kCls = 2,   // the first token's
  kLast = 3,  // the last token's
};

}  // namespace dunlin
