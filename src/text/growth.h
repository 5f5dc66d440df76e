// How long a text may become by the steps that a tokenizer.json names one behind the other.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/json_view.h"

namespace dunlin::hf {

constexpr std::size_t kMaxSteps = 64;
constexpr std::size_t kMaxGrowth = 2048;  // published models: up to 100

// Steps have growth(): how many times longer one makes a text at most. What Unicode's own forms do
// counts as 1: it is little and doesn't add up.
template <typename Steps>
Outcome check_growth(const Steps& steps, const JsonView& view) {
  if (steps.size() > kMaxSteps)
    return view.error(fmt::format("is one of more than {} steps", kMaxSteps));
  std::size_t growth = 1;
  for (const auto& step : steps) {
    if (step->growth() > kMaxGrowth / growth) {
      return view.error(fmt::format("can make a text more than {} times as long", kMaxGrowth));
    }
    growth *= step->growth();
  }
  return {};
}

}  // namespace dunlin::hf
