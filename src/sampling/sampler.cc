#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/rng.h"

namespace dunlin {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kMinusInf = -kInf;
constexpr float kGreedyBelow = 1e-5f;
// Up to here top_k works on a sorted list of its own; beyond, on the whole row.
constexpr int kMaxListedTopK = 2048;

bool is_greedy(const SamplingParams& params) { return params.temperature < kGreedyBelow; }

// ceil(top_p * total), at least 1. top_p as a double is exact, the product is rounded once.
std::uint64_t nucleus_mass(float top_p, std::uint64_t total) {
  const double mass = std::ceil(static_cast<double>(top_p) * static_cast<double>(total));
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(mass), 1, total);
}

// floor(u * total) in integers; u is a multiple of 2^-53.
std::uint64_t target_of(double u, std::uint64_t total) {
  const auto bits = static_cast<std::uint64_t>(u * 0x1p53);
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(bits) * total >> 53);
}

}  // namespace

Sampler::Sampler(int vocab_size)
    : vocab_size_(vocab_size),
      raw_(static_cast<std::size_t>(vocab_size)),
      maxima_(maxima_size(static_cast<std::size_t>(vocab_size))),
      weights_(static_cast<std::size_t>(vocab_size)),
      bitmask_((static_cast<std::size_t>(vocab_size) + 31) / 32) {
  live_.reserve(maxima_.size());
  // A top_p below 1 may look at the whole row.
  candidates_.reserve(static_cast<std::size_t>(vocab_size) + 2 * kMaxListedTopK + 64);
}

std::int64_t Sampler::reserved_bytes(int vocab_size) {
  const auto vocab = static_cast<std::size_t>(vocab_size);
  const std::size_t blocks = maxima_size(vocab), candidates = vocab + 2 * kMaxListedTopK + 64;
  return static_cast<std::int64_t>(
      vocab * (sizeof(float) + sizeof(Weight)) + blocks * (sizeof(float) + sizeof(LiveBlock)) +
      candidates * sizeof(Candidate) + (vocab + 31) / 32 * sizeof(std::uint32_t));
}

std::span<const float> Sampler::maxima_of(std::span<const float> row) {
  row_maxima(row, maxima_);
  return maxima_;
}

std::optional<TokenId> Sampler::sample(std::span<float> row, std::span<const float> maxima,
                                       const SampleInput& input, TokenLogprobs* logprobs) {
  DUNLIN_CHECK(row.size() == static_cast<std::size_t>(vocab_size_), "a row is [vocab_size]");
  const SamplingParams& params = *input.params;
  const bool wants_logprobs = logprobs != nullptr && params.num_logprobs >= 0;
  if (wants_logprobs) std::copy(row.begin(), row.end(), raw_.begin());
  if (process(row, input) || maxima.empty()) maxima = maxima_of(row);

  std::optional<TokenId> token;
  if (is_greedy(params)) {
    const TokenId best = row_argmax(row, maxima);
    if (best >= 0) token = best;
  } else if (const float max = row_max(maxima); max > kMinusInf) {
    const double u = uniform_at(params.seed, params.choice_idx, input.position);
    for (const Effort effort : kEfforts) {
      const auto kept = keep(row, maxima, max, params, effort);
      if (kept) token = walk(row, *kept, u);
      if (token) break;
    }
    DUNLIN_CHECK(token.has_value(), "the running sum exceeds every target below the total");
  }
  if (wants_logprobs && token) {
    *logprobs = compute_logprobs(raw_, *token, params.num_logprobs, candidates_);
  }
  return token;
}

bool Sampler::process(std::span<float> row, const SampleInput& input) {
  const SamplingParams& params = *input.params;
  const bool changes = !params.logit_bias.empty() || has_penalties(params) ||
                       !input.forbidden.empty() || input.constraint != nullptr;
  if (!changes) return false;
  apply_logit_bias(params.logit_bias, row);
  if (has_penalties(params)) {
    DUNLIN_CHECK(input.counts != nullptr, "penalties need the token counts");
    apply_penalties(params, *input.counts, row);
  }
  mask_tokens(input.forbidden, row);
  if (input.constraint != nullptr) {
    input.constraint->fill_bitmask(bitmask_);
    apply_bitmask(bitmask_, row);
  }
  return true;
}

template <typename F>
void Sampler::for_tokens(const LiveBlock& block, F fn) const {
  const auto first = static_cast<std::int32_t>(kMaximaBlock) * block.idx;
  const std::int32_t end = std::min(first + static_cast<std::int32_t>(kMaximaBlock), vocab_size_);
  for (TokenId id = first; id < end; ++id) fn(id);
}

template <typename F>
void Sampler::for_kept(std::span<const float> row, const Cut& cut, F fn) const {
  for (const LiveBlock& block : live_) {
    if (block.max < cut.value) continue;
    for_tokens(block, [&](TokenId id) {
      if (cut.keeps(row[static_cast<std::size_t>(id)], id)) fn(id);
    });
  }
}

bool Sampler::find_live(std::span<const float> maxima, float least, std::size_t limit) {
  live_.clear();
  for (std::size_t b = 0; b < maxima.size(); ++b) {
    if (!(maxima[b] >= least)) continue;
    if (live_.size() == limit) return false;
    live_.push_back({static_cast<std::int32_t>(b), maxima[b], 0});
  }
  return true;
}

std::uint64_t Sampler::weigh(std::span<const float> row, float max, float temperature) {
  std::uint64_t total = 0;
  for (LiveBlock& block : live_) {
    const std::size_t begin = static_cast<std::size_t>(block.idx) * kMaximaBlock;
    const std::size_t count = std::min(kMaximaBlock, row.size() - begin);
    block.sum = count == kMaximaBlock && max != kInf
                    ? block_weights(row.data() + begin, max, temperature, weights_.data() + begin)
                    : row_weights(row.subspan(begin, count), max, temperature,
                                  std::span(weights_).subspan(begin, count));
    total += block.sum;
  }
  return total;
}

std::optional<Sampler::Kept> Sampler::keep(std::span<const float> row,
                                           std::span<const float> maxima, float max,
                                           const SamplingParams& params, Effort effort) {
  Cut cut{kMinusInf, -1};
  if (params.min_p > 0) {
    cut = {max + params.temperature * std::log(params.min_p), vocab_size_};
  }
  const bool has_top_k = params.top_k > 0 && params.top_k < vocab_size_;
  if (has_top_k) {
    select_top(row, maxima, params.top_k, candidates_);
    if (params.top_k <= kMaxListedTopK) return keep_list(max, cut, params);
    const Candidate last = *std::max_element(candidates_.begin(), candidates_.end(), ranks_before);
    if (ranks_before(last, {cut.value, cut.id})) cut = {last.value, last.id};
  }
  const bool has_cut = cut.value > kMinusInf;
  if (has_cut || max == kInf) effort = std::end(kEfforts)[-1];
  const bool weighs_all = effort.depth == kWeightlessDepth;
  const float least = max == kInf ? kInf : max - effort.depth * params.temperature;
  if (!find_live(maxima, std::max(cut.value, least), maxima.size() / effort.share)) {
    return std::nullopt;
  }
  Kept kept;
  kept.cut = cut;
  kept.total = weigh(row, max, params.temperature);
  if (has_cut) kept.total = mass_of(row, cut);
  if (!weighs_all) {
    kept.rest = effort.reads_rest ? weight_range_below(row, maxima, max, params.temperature, least)
                                  : weight_range_below(maxima, max, params.temperature, least);
  }
  if (params.top_p == 1) return kept;
  // Here what is in live_ and ranks before all of the rest.
  if (!weighs_all) kept.cut = {least, vocab_size_};
  return nucleus(row, kept, params.top_p);
}

// candidates_ holds the top_k; afterwards it holds the kept ones by id, and weights_ theirs.
Sampler::Kept Sampler::keep_list(float max, const Cut& min_p_cut, const SamplingParams& params) {
  std::erase_if(candidates_, [&](const Candidate& c) { return !min_p_cut.keeps(c.value, c.id); });
  std::sort(candidates_.begin(), candidates_.end(), ranks_before);
  const auto weigh = [&](std::uint64_t until) {
    std::uint64_t total = 0;
    float values[8];
    for (std::size_t i = 0; i < candidates_.size() && total < until; ++i) {
      if (i % 8 == 0) {
        const std::size_t count = std::min<std::size_t>(8, candidates_.size() - i);
        for (std::size_t j = 0; j < count; ++j) values[j] = candidates_[i + j].value;
        row_weights({values, count}, max, params.temperature,
                    std::span(weights_).subspan(i, count));
      }
      total += weights_[i];
      if (total >= until) candidates_.resize(i + 1);
    }
    return total;
  };
  Kept kept;
  kept.is_list = true;
  kept.total = weigh(std::numeric_limits<std::uint64_t>::max());
  if (params.top_p < 1) weigh(nucleus_mass(params.top_p, kept.total));
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  kept.total = weigh(std::numeric_limits<std::uint64_t>::max());
  return kept;
}

std::uint64_t Sampler::mass_of(std::span<const float> row, const Cut& cut) const {
  std::uint64_t mass = 0;
  for_kept(row, cut, [&](TokenId id) { mass += weights_[static_cast<std::size_t>(id)]; });
  return mass;
}

// Where the cut is likely to be, by the tokens of some blocks: where all below weigh 0.7 to 1.4
// times what is to be left out, which is a sum of many small weights. Tokens under `least` are
// surely below.
Sampler::Band Sampler::estimate_band(std::span<const float> row, std::uint64_t left_out,
                                     std::uint64_t least) {
  constexpr std::size_t kSampledBlocks = 128;
  Band band{kMinusInf, kInf, 0};
  const std::size_t stride = live_.size() / kSampledBlocks;
  if (stride < 4) return band;
  const double wanted = static_cast<double>(left_out) / static_cast<double>(stride);
  double below = 0;
  candidates_.clear();
  for (std::size_t b = 0; b < live_.size(); b += stride) {
    for_tokens(live_[b], [&](TokenId id) {
      const auto i = static_cast<std::size_t>(id);
      if (weights_[i] > least)
        candidates_.push_back({row[i], id});
      else
        below += weights_[i];
    });
  }
  std::sort(candidates_.begin(), candidates_.end(), ranks_before);
  for (auto it = candidates_.rbegin(); it != candidates_.rend(); ++it) {
    if (below < 0.7 * wanted) band.low = it->value;
    below += weights_[static_cast<std::size_t>(it->id)];
    if (below > 1.4 * wanted) {
      band.high = it->value;
      break;
    }
  }
  return band;
}

// candidates_ becomes the tokens within the band and the cut that weigh `least`; returns their sum.
std::uint64_t Sampler::collect_band(std::span<const float> row, const Cut& cut, std::uint64_t least,
                                    Band& band) {
  candidates_.clear();
  std::uint64_t within = 0;
  band.above = 0;
  const float low = std::max(band.low, cut.value);
  for (const LiveBlock& block : live_) {
    if (block.sum < least || block.max < low) continue;
    for_tokens(block, [&](TokenId id) {
      const auto i = static_cast<std::size_t>(id);
      const Weight weight = weights_[i];
      if (!(row[i] >= low) || weight < least || weight == 0 || !cut.keeps(row[i], id)) return;
      if (row[i] > band.high) {
        band.above += weight;
      } else {
        candidates_.push_back({row[i], id});
        within += weight;
      }
    });
  }
  return within;
}

// The fewest best tokens of `from` whose weights reach top_p of the sum of its total and its rest.
// With all tokens under some weight together weighing no more than what is left out, none of those
// can be among them: only the others are candidates. They are halved by rank until the token at
// which the sum is reached is found.
std::optional<Sampler::Kept> Sampler::nucleus(std::span<const float> row, const Kept& from,
                                              float top_p) {
  const std::uint64_t sum = from.total + from.rest.least;
  const std::uint64_t target = nucleus_mass(top_p, sum);
  const std::uint64_t left_out = sum - target;
  if (left_out < from.rest.most) return std::nullopt;
  const std::uint64_t average = (left_out - from.rest.most) / (live_.size() * kMaximaBlock);
  // A hair less, since rounding may turn the weights of two neighbours around.
  const std::uint64_t least = average - std::min(average, average / 1024 + 1);
  Band band = estimate_band(row, left_out, least);
  const std::uint64_t within = collect_band(row, from.cut, least, band);
  if (band.above >= target || band.above + within < target) {
    band = {kMinusInf, kInf, 0};
    collect_band(row, from.cut, least, band);
  }
  const auto weight_at = [&](const Candidate& c) {
    return weights_[static_cast<std::size_t>(c.id)];
  };
  auto begin = candidates_.begin();
  auto end = candidates_.end();
  std::uint64_t before = band.above;  // weight of all that rank before `begin`
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, ranks_before);
    std::uint64_t half = 0;
    for (auto it = begin; it != middle; ++it) half += weight_at(*it);
    if (before + half >= target) {
      end = middle;
    } else {
      before += half;
      begin = middle;
    }
  }
  Kept kept;
  kept.cut = {begin->value, begin->id};
  kept.total = before + weight_at(*begin);
  if (kept.total < nucleus_mass(top_p, from.total + from.rest.most)) return std::nullopt;
  return kept;
}

// A token is certain that is drawn with the least and with the most of the rest, all before or all
// behind it.
std::optional<TokenId> Sampler::walk(std::span<const float> row, const Kept& kept, double u) const {
  const std::uint64_t target = target_of(u, kept.total + kept.rest.least);
  const std::uint64_t highest = target_of(u, kept.total + kept.rest.most);
  std::uint64_t sum = 0;
  if (kept.is_list) {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      sum += weights_[i];
      if (sum > target) return candidates_[i].id;
    }
    return std::nullopt;
  }
  const bool is_whole = kept.cut.value == kMinusInf;
  for (const LiveBlock& block : live_) {
    if (block.max < kept.cut.value) continue;
    if (is_whole && sum + block.sum <= highest) {
      sum += block.sum;
      continue;
    }
    TokenId drawn = -1;
    bool is_certain = false;
    for_tokens(block, [&](TokenId id) {
      const auto i = static_cast<std::size_t>(id);
      if (drawn >= 0 || !kept.cut.keeps(row[i], id)) return;
      is_certain = sum + kept.rest.most <= target;
      sum += weights_[i];
      if (sum > highest) drawn = id;
    });
    if (drawn >= 0) return is_certain ? std::optional(drawn) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<std::pair<TokenId, Weight>> Sampler::distribution(std::span<const float> row,
                                                              const SamplingParams& params) {
  std::vector<std::pair<TokenId, Weight>> result;
  const auto maxima = maxima_of(row);
  const float max = row_max(maxima);
  if (!(max > kMinusInf)) return result;
  std::optional<Kept> kept;
  for (const Effort effort : kEfforts) {
    kept = keep(row, maxima, max, params, effort);
    if (kept && kept->rest.most == 0) break;
  }
  if (kept->is_list) {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (weights_[i] > 0) result.emplace_back(candidates_[i].id, weights_[i]);
    }
  } else {
    for_kept(row, kept->cut, [&](TokenId id) {
      const Weight weight = weights_[static_cast<std::size_t>(id)];
      if (weight > 0) result.emplace_back(id, weight);
    });
  }
  return result;
}

}  // namespace dunlin
