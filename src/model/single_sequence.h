// Runs a Model over one sequence without the engine. One thread, the model's.
#pragma once

#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "model/sequence_set.h"

namespace dunlin {

class SingleSequence {
 public:
  // max_chunk: tokens of one forward; longer inputs run in several. Calls model.reserve().
  SingleSequence(Model& model, int max_context, int max_chunk = 512);

  // Computes `ids` behind what the sequence has. Calls `take(position, row)` with the logits
  // [vocab_size] of each wanted absolute position among them, ascending; a row is valid during
  // the call only.
  void append(std::span<const TokenId> ids, std::span<const std::int32_t> wanted_positions,
              FunctionRef<void(std::int32_t position, std::span<const float> row)> take);

  // Logits behind the last of `ids`, valid until the next call.
  std::span<const float> append(std::span<const TokenId> ids);

  int num_tokens() const { return set_.num_tokens(0); }
  void truncate(int num_tokens) { set_.truncate(0, num_tokens); }

 private:
  SequenceSet set_;
  int max_chunk_;
  std::size_t vocab_size_;
};

}  // namespace dunlin
