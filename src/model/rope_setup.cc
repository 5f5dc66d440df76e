#include "model/rope_setup.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dunlin {
namespace {

// The (fractional) pair of dimensions that makes so many turns within the original context.
double pair_of_turns(const RopeConfig& config, double turns) {
  const double period = 2 * std::numbers::pi * turns;
  return config.dims * std::log(config.original_context / period) /
         (2 * std::log(static_cast<double>(config.theta)));
}

// Fast pairs stay as they are, slow ones are stretched, those between are mixed.
void apply_yarn(const RopeConfig& config, std::vector<double>& inv_freq) {
  const YarnConfig& yarn = config.yarn;
  double low = pair_of_turns(config, yarn.beta_fast), high = pair_of_turns(config, yarn.beta_slow);
  if (yarn.round_ramp) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(config.dims - 1));
  if (low == high) high += 0.001;  // no division by zero
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    const double stretched = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    inv_freq[i] *= (1 - stretched) + stretched / yarn.factor;
  }
}

}  // namespace

RopeFrequencies make_frequencies(const RopeConfig& config, const std::vector<float>& factors) {
  RopeFrequencies frequencies = rope_frequencies(config.dims, config.theta);
  for (std::size_t i = 0; i < frequencies.inv_freq.size(); ++i) {
    frequencies.inv_freq[i] /= config.position_divisor;
    if (config.factors != RopeFactors::kNone) frequencies.inv_freq[i] /= factors[i];
  }
  if (config.yarn.factor != 0) apply_yarn(config, frequencies.inv_freq);
  frequencies.attention_factor = config.attention_factor;
  return frequencies;
}

}  // namespace dunlin
