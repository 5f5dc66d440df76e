#include "cli/bench_runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/clock.h"
#include "base/rng.h"
#include "model/sequence_set.h"

namespace dunlin::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<TokenId> random_tokens(int count, int vocab_size, std::uint32_t stream) {
  std::vector<TokenId> ids(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    ids[static_cast<std::size_t>(i)] =
        static_cast<TokenId>(uniform_at(1, stream, static_cast<std::uint64_t>(i)) * vocab_size);
  return ids;
}

// Runs `ids` behind what sequence `seq` has, in steps; logits of the last token only, as a server
// would ask.
void prefill(SequenceSet& set, int seq, std::span<const TokenId> ids, int step_tokens) {
  while (!ids.empty()) {
    const auto count = std::min<std::size_t>(ids.size(), static_cast<std::size_t>(step_tokens));
    const std::int32_t last = static_cast<std::int32_t>(count) - 1;
    const bool final_step = count == ids.size();
    const SequenceSet::Part part{seq, ids.first(count), std::span(&last, final_step ? 1 : 0)};
    set.step(std::span(&part, 1));
    ids = ids.subspan(count);
  }
}

double operations(const BenchShape& shape, double tokens, double logit_rows) {
  return 2.0 * (static_cast<double>(shape.layer_weights) * tokens +
                static_cast<double>(shape.head_weights) * logit_rows);
}

}  // namespace

double BenchResult::tokens_per_s_mean() const {
  double sum = 0;
  for (const double s : seconds) sum += num_tokens() / s;
  return sum / static_cast<double>(seconds.size());
}

double BenchResult::tokens_per_s_stddev() const {
  if (seconds.size() < 2) return 0;
  const double mean = tokens_per_s_mean();
  double sum = 0;
  for (const double s : seconds) sum += (num_tokens() / s - mean) * (num_tokens() / s - mean);
  return std::sqrt(sum / static_cast<double>(seconds.size() - 1));
}

BenchResult run_bench(Model& model, const BenchTest& test, const BenchShape& shape) {
  const int vocab_size = model.limits().vocab_size;
  SequenceSet set(model, 1, test.n_depth + test.n_prompt + test.n_gen + 1, shape.batch_tokens, 1);
  const auto depth = random_tokens(test.n_depth, vocab_size, 0);
  const auto prompt = random_tokens(test.n_prompt, vocab_size, 1);
  const auto generated = random_tokens(test.n_gen, vocab_size, 2);
  prefill(set, 0, depth, shape.batch_tokens);
  BenchResult result{test, {}, 0, 0};
  double fastest = 0;
  // The first round warms caches and page tables and is not counted.
  for (int round = 0; round <= shape.repetitions; ++round) {
    set.truncate(0, test.n_depth);
    const std::uint64_t bytes_before = model.counters().weight_bytes_read;
    const auto start = Clock::now();
    prefill(set, 0, prompt, shape.batch_tokens);
    for (std::size_t i = 0; i < generated.size(); ++i) {
      if (!shape.no_kv_cache) {
        prefill(set, 0, std::span(&generated[i], 1), 1);
        continue;
      }
      set.truncate(0, 0);
      std::vector<TokenId> all = depth;
      all.insert(all.end(), generated.begin(),
                 generated.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      prefill(set, 0, all, shape.batch_tokens);
    }
    const double seconds = seconds_since(start);
    if (round == 0) continue;
    result.seconds.push_back(seconds);
    if (fastest == 0 || seconds < fastest) {
      fastest = seconds;
      result.weight_bytes_per_s =
          static_cast<double>(model.counters().weight_bytes_read - bytes_before) / seconds;
    }
  }
  result.ops_per_s =
      operations(shape, result.num_tokens(), test.n_gen + (test.n_prompt > 0 ? 1 : 0)) / fastest;
  return result;
}

BatchedResult run_batched_bench(Model& model, int n_prompt, int n_gen, int n_seqs,
                                const BenchShape& shape) {
  const int vocab_size = model.limits().vocab_size;
  const int step_tokens = std::max(shape.batch_tokens, n_seqs);
  SequenceSet set(model, n_seqs, n_prompt + n_gen + 1, step_tokens, n_seqs);
  BatchedResult result{n_prompt, n_gen, n_seqs, 0, 0, 0, 0};
  auto start = Clock::now();
  for (int seq = 0; seq < n_seqs; ++seq)
    prefill(set, seq, random_tokens(n_prompt, vocab_size, static_cast<std::uint32_t>(seq)),
            step_tokens);
  result.prefill_s = seconds_since(start);

  const std::uint64_t bytes_before = model.counters().weight_bytes_read;
  std::vector<TokenId> ids(static_cast<std::size_t>(n_seqs));
  std::vector<SequenceSet::Part> parts(ids.size());
  const std::int32_t first = 0;
  start = Clock::now();
  for (int step = 0; step < n_gen; ++step) {
    const auto next = random_tokens(n_seqs, vocab_size, static_cast<std::uint32_t>(1000 + step));
    std::copy(next.begin(), next.end(), ids.begin());
    for (std::size_t seq = 0; seq < ids.size(); ++seq)
      parts[seq] = {static_cast<int>(seq), std::span(&ids[seq], 1), std::span(&first, 1)};
    set.step(parts);
  }
  result.decode_s = seconds_since(start);
  result.weight_bytes_per_s =
      static_cast<double>(model.counters().weight_bytes_read - bytes_before) / result.decode_s;
  const double tokens = static_cast<double>(n_gen) * n_seqs;
  result.ops_per_s = operations(shape, tokens, tokens) / result.decode_s;
  return result;
}

}  // namespace dunlin::cli
