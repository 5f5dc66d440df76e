#include "model/single_sequence.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace dunlin {
namespace {

// Rows of logits that one forward gives: with large vocabularies each is a megabyte.
constexpr int kMaxOutputs = 16;

}  // namespace

SingleSequence::SingleSequence(Model& model, int max_context, int max_chunk)
    : set_(model, 1, max_context, max_chunk, kMaxOutputs),
      max_chunk_(max_chunk),
      vocab_size_(static_cast<std::size_t>(model.limits().vocab_size)) {
  DUNLIN_CHECK(max_chunk > 0, "a chunk holds tokens");
}

void SingleSequence::append(std::span<const TokenId> ids,
                            std::span<const std::int32_t> wanted_positions,
                            FunctionRef<void(std::int32_t, std::span<const float>)> take) {
  while (!ids.empty()) {
    // A chunk ends at its size, the input's end, or where the rows of one forward are used up.
    const std::int32_t begin = num_tokens();
    std::size_t size = std::min(ids.size(), static_cast<std::size_t>(max_chunk_));
    std::vector<std::int32_t> wanted;
    for (const std::int32_t position : wanted_positions) {
      if (position < begin || position - begin >= static_cast<std::int32_t>(size)) continue;
      wanted.push_back(position - begin);
      if (wanted.size() == kMaxOutputs) size = static_cast<std::size_t>(position - begin) + 1;
    }
    const SequenceSet::Part part{0, ids.first(size), wanted};
    const std::span<const float> rows = set_.step({&part, 1});
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      take(begin + wanted[i], rows.subspan(i * vocab_size_, vocab_size_));
    }
    ids = ids.subspan(size);
  }
}

std::span<const float> SingleSequence::append(std::span<const TokenId> ids) {
  DUNLIN_CHECK(!ids.empty(), "logits follow a token");
  const std::int32_t last = num_tokens() + static_cast<std::int32_t>(ids.size()) - 1;
  std::span<const float> result;
  append(ids, {&last, 1}, [&](std::int32_t, std::span<const float> row) { result = row; });
  return result;
}

}  // namespace dunlin
