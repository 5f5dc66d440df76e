#include "eval/kld.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/percentile.h"
#include "sampling/row_ops.h"

namespace dunlin::eval {
namespace {

double log_sum_exp(std::span<const float> row) {
  const float max = row_max(row);
  return static_cast<double>(max) + std::log(row_sum_exp(row, max));
}

double kl_divergence(std::span<const float> base, double base_norm, std::span<const float> measured,
                     double measured_norm) {
  constexpr double kLeastLogp = -80;  // e^-80 of a token's share is beyond a double's digits
  double sum = 0;
  for (std::size_t i = 0; i < base.size(); ++i) {
    const double log_p = static_cast<double>(base[i]) - base_norm;
    if (log_p > kLeastLogp)
      sum += std::exp(log_p) * (log_p - (static_cast<double>(measured[i]) - measured_norm));
  }
  return sum;
}

// A part of a chunk: the tokens [begin, end) are scored, those before them are context.
EngineRequest part_request(const Chunks& chunks, int idx, int begin, int end) {
  EngineRequest request = scoring_request(chunks, idx);
  request.prompt.resize(static_cast<std::size_t>(end));
  request.echo_start = begin;
  return request;
}

Outcome run_one(Engine& engine, EngineRequest request) {
  return run_requests(
      engine, 1, [&](int) { return std::move(request); }, [](int, const FinishedRequest&) {});
}

}  // namespace

double kl_divergence(std::span<const float> base, std::span<const float> measured) {
  return kl_divergence(base, log_sum_exp(base), measured, log_sum_exp(measured));
}

void DivergenceSums::add(std::span<const float> base, std::span<const float> measured,
                         TokenId next) {
  const double base_norm = log_sum_exp(base), measured_norm = log_sum_exp(measured);
  klds_.push_back(kl_divergence(base, base_norm, measured, measured_norm));
  kld_.add(klds_.back());
  same_top_.add(row_argmax(base) == row_argmax(measured) ? 1 : 0);
  const auto id = static_cast<std::size_t>(next);
  const double base_nll = base_norm - static_cast<double>(base[id]);
  const double nll = measured_norm - static_cast<double>(measured[id]);
  base_nll_.add(base_nll);
  nll_.add(nll);
  nll_difference_.add(nll - base_nll);
}

Divergence DivergenceSums::result() const {
  std::vector<double> ascending = klds_;
  std::sort(ascending.begin(), ascending.end());
  Divergence found;
  found.num_positions = kld_.count();
  found.kld = kld_.mean();
  found.median = percentile(ascending, 50);
  found.percentile_99 = percentile(ascending, 99);
  found.percentile_99_9 = percentile(ascending, 99.9);
  found.maximum = percentile(ascending, 100);
  found.same_top = same_top_.mean();
  found.base_nll = base_nll_.mean();
  found.nll = nll_.mean();
  found.nll_difference = nll_difference_.mean();
  return found;
}

Result<Divergence> measure_divergence(Engine& base, Engine& measured, const Chunks& chunks,
                                      const Progress& progress, std::int64_t max_kept_bytes) {
  const auto vocab_size = static_cast<std::size_t>(base.limits().vocab_size);
  if (measured.limits().vocab_size != base.limits().vocab_size) {
    return invalid(
        fmt::format("the vocabularies have {} and {} tokens; only models with the same "
                    "one can be compared",
                    base.limits().vocab_size, measured.limits().vocab_size));
  }
  const std::int64_t row_bytes = static_cast<std::int64_t>(vocab_size * sizeof(float));
  const int most = static_cast<int>(
      std::clamp<std::int64_t>(max_kept_bytes / row_bytes, 1, chunks.num_scored()));
  std::vector<float> kept(static_cast<std::size_t>(most) * vocab_size);
  const int num_chunks = static_cast<int>(chunks.ids.size());
  DivergenceSums sums;
  for (int chunk = 0; chunk < num_chunks; ++chunk) {
    const std::vector<TokenId>& ids = chunks.ids[static_cast<std::size_t>(chunk)];
    for (int begin = chunks.first_scored; begin < chunks.context; begin += most) {
      const int end = std::min(begin + most, chunks.context);
      const auto kept_row = [&](int position) {
        return std::span(kept).subspan(static_cast<std::size_t>(position - begin) * vocab_size,
                                       vocab_size);
      };
      EngineRequest first = part_request(chunks, chunk, begin, end);
      first.on_prompt_logits = [&](int position, std::span<const float> row) {
        std::ranges::copy(row, kept_row(position).begin());
      };
      DUNLIN_TRY(run_one(base, std::move(first)));
      EngineRequest second = part_request(chunks, chunk, begin, end);
      second.on_prompt_logits = [&](int position, std::span<const float> row) {
        sums.add(kept_row(position), row, ids[static_cast<std::size_t>(position)]);
      };
      DUNLIN_TRY(run_one(measured, std::move(second)));
    }
    if (progress) progress(chunk + 1, num_chunks);
  }
  Divergence found = sums.result();
  found.num_chunks = num_chunks;
  return found;
}

}  // namespace dunlin::eval
