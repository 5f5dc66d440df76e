#include "engine/step_budget.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dunlin {
namespace {

// Relative, a step: how far the coefficients drift, and how far a time is off.
constexpr double kDrift = 0.02;
constexpr double kNoise = 0.1;
// Times of less are noise.
constexpr double kNoiseFloor_s = 5e-5;
// An error of more deviations than this is another process, or a change: it counts as so many, and
// makes the next ones count more.
constexpr double kMaxDeviations = 3;
constexpr double kSurpriseGrowth = 2;
// Of ttft_s, what prompts are planned to take: predictions err.
constexpr double kPlannedShare = 0.8;
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

}  // namespace

void DriftingFit::observe(double x0, double x1, double y) {
  y = std::max(y, kNoiseFloor_s);
  if (is_empty_) {
    is_empty_ = false;
    a_ = y / (x0 + x1 / scale_);
    b_ = a_ / scale_;
    paa_ = a_ * a_;
    pbb_ = b_ * b_;
    return;
  }
  const double size = a_ + b_ * scale_;
  paa_ += kDrift * kDrift * size * size;
  pbb_ += kDrift * kDrift * size * size / (scale_ * scale_);
  const double px0 = paa_ * x0 + pab_ * x1, px1 = pab_ * x0 + pbb_ * x1;
  const double noise = kNoise * predict(x0, x1) + kNoiseFloor_s;
  const double variance = x0 * px0 + x1 * px1 + noise * noise;
  const double most = kMaxDeviations * std::sqrt(variance);
  const double error = y - predict(x0, x1);
  const double counted = std::clamp(error, -most, most);
  a_ = std::max(a_ + px0 / variance * counted, 0.0);
  b_ = std::max(b_ + px1 / variance * counted, 0.0);
  paa_ -= px0 * px0 / variance;
  pab_ -= px0 * px1 / variance;
  pbb_ -= px1 * px1 / variance;
  if (counted == error) return;
  paa_ *= kSurpriseGrowth;
  pab_ *= kSurpriseGrowth;
  pbb_ *= kSurpriseGrowth;
}

void StepBudget::begin(int num_decode_tokens) {
  is_limited_ = has_targets() && num_decode_tokens > 0;
  decode_s_ = decode_.predict(1, num_decode_tokens);
  spent_s_ = expected_s_ = needed_s_ = 0;
  has_spent_ = is_late_ = false;
}

// A share of 1 - decode_s / step of the time goes to prompts, so the work before the slack is over
// is done in steps of decode_s / (1 - work / slack).
void StepBudget::expect_prompt(int begin, int num_tokens, double age_s) {
  expected_s_ += prompt_time(begin, num_tokens);
  const double slack = kPlannedShare * targets_.ttft_s - age_s;
  if (expected_s_ >= slack) {
    is_late_ = true;
    return;
  }
  needed_s_ = std::max(needed_s_, decode_s_ / (1 - expected_s_ / slack));
}

double StepBudget::limit_s() const {
  if (targets_.ttft_s == 0) return targets_.itl_s;
  if (targets_.itl_s == 0) return is_late_ ? kNoLimit : needed_s_;
  return std::clamp(needed_s_, targets_.itl_s, kMaxStretch * targets_.itl_s);
}

double StepBudget::prompt_time(int begin, int num_tokens) const {
  StepWork work;
  work.add_prompt(begin, num_tokens);
  return prompt_.predict(work.num_prompt_tokens, work.num_attended);
}

// The largest n with a * n + b * (begin * n + n^2 / 2) within what is left.
int StepBudget::num_tokens_left(int begin) const {
  if (!is_limited_) return std::numeric_limits<int>::max();
  const int least = has_spent_ ? 0 : kMinPromptTokens;
  if (prompt_.is_empty()) return least;
  const double left = limit_s() - decode_s_ - spent_s_;
  if (left <= 0) return least;
  const double linear = prompt_.a() + prompt_.b() * begin;
  // Written so that it holds for b = 0, too.
  const double root = std::sqrt(linear * linear + 2 * prompt_.b() * left);
  const double n = 2 * left / (linear + root);
  if (!(n < std::numeric_limits<int>::max())) return std::numeric_limits<int>::max();
  return std::max(static_cast<int>(n), least);
}

void StepBudget::spend(int begin, int num_tokens) {
  spent_s_ += prompt_time(begin, num_tokens);
  has_spent_ = true;
}

void StepBudget::observe(const StepWork& work, double seconds) {
  if (!has_targets()) return;
  if (work.num_prompt_tokens == 0) {
    if (work.num_decode_tokens > 0) decode_.observe(1, work.num_decode_tokens, seconds);
    return;
  }
  const double decode_s =
      work.num_decode_tokens > 0 ? decode_.predict(1, work.num_decode_tokens) : 0;
  prompt_.observe(work.num_prompt_tokens, work.num_attended, seconds - decode_s);
}

}  // namespace dunlin
