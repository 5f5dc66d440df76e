#include "engine/row_sampler.h"

#include <algorithm>

namespace dunlin {
namespace {

// Each holds a few arrays of vocab_size.
constexpr int kMaxSamplers = 16;

int num_samplers(int num_threads, int max_seqs) {
  return std::min({num_threads, max_seqs, kMaxSamplers});
}

}  // namespace

std::int64_t RowSampler::reserved_bytes(int num_threads, int max_seqs, int vocab_size) {
  return num_samplers(num_threads, max_seqs) * Sampler::reserved_bytes(vocab_size);
}

RowSampler::RowSampler(ModelRunner& runner, int max_seqs)
    : runner_(runner), tokens_(static_cast<std::size_t>(max_seqs)) {
  const int count = num_samplers(runner.num_threads(), max_seqs);
  samplers_.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) samplers_.emplace_back(runner.limits().vocab_size);
  draws_.reserve(static_cast<std::size_t>(max_seqs));
}

std::span<SampledToken> RowSampler::sample(const ScheduledBatch& batch, const StepRows& rows) {
  const auto vocab_size = static_cast<std::size_t>(runner_.limits().vocab_size);
  const std::size_t num_maxima = maxima_size(vocab_size);
  draws_.clear();
  const auto values = [&](std::size_t row) {
    return rows.values.subspan(row * vocab_size, vocab_size);
  };
  const auto maxima = [&](std::size_t row) {
    return rows.maxima.subspan(row * num_maxima, num_maxima);
  };
  std::size_t end_row = 0;
  for (const ScheduledSequence& s : batch.seqs) {
    end_row += static_cast<std::size_t>(s.num_rows());
    if (s.samples) draws_.push_back({s.seq, values(end_row - 1), maxima(end_row - 1)});
  }
  for (const ScheduledFork& fork : batch.forks) {
    const auto from = static_cast<std::size_t>(fork.source_row);
    std::ranges::copy(values(from), values(end_row).begin());
    std::ranges::copy(maxima(from), maxima(end_row).begin());
    draws_.push_back({fork.seq, values(end_row), maxima(end_row)});
    ++end_row;
  }
  const std::size_t num_chunks = std::min(samplers_.size(), draws_.size());
  runner_.parallel_for(static_cast<int>(num_chunks), [&](int chunk) {
    const auto first = static_cast<std::size_t>(chunk);
    for (std::size_t i = first; i < draws_.size(); i += num_chunks) {
      draw(samplers_[first], draws_[i], tokens_[i]);
    }
  });
  return {tokens_.data(), draws_.size()};
}

void RowSampler::draw(Sampler& sampler, const Draw& draw, SampledToken& out) {
  const Sequence& seq = *draw.seq;
  SampleInput input;
  input.params = &seq.sampling;
  input.counts = &seq.counts;
  if (seq.num_output_tokens() < seq.sampling.min_tokens) input.forbidden = seq.end_ids;
  input.constraint = seq.constraint.get();
  input.position = static_cast<std::uint64_t>(seq.num_tokens());
  out.logprobs = {};
  out.token = sampler.sample(draw.row, draw.maxima, input, &out.logprobs);
}

}  // namespace dunlin
