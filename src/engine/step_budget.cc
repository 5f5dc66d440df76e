#include "engine/step_budget.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dunlin {
namespace {

// Of the observations before, what counts beside a new one; and beside the first that shows that
// the machine is another.
constexpr double kMemory = 0.95;
constexpr double kMemoryOfAnother = 0.3;
// Weight of the former a and b, of what is remembered.
constexpr double kInertia = 0.02;
constexpr double kMaxSurprise = 1.5;  // times the prediction, or a part
constexpr int kMaxSurprises = 3;      // in a row
// Times of less are noise.
constexpr double kNoiseFloor_s = 5e-5;
// Of ttft_s, what prompts are planned to take: predictions err.
constexpr double kPlannedShare = 0.8;
// Steps of the estimate of lateness: a step beyond it moves it up by 99 times what one within moves
// it down (Robbins and Monro's approximation of a quantile, 1951). Beyond the largest the machine
// is another's, and slower prompts would not help.
constexpr double kLatenessStep = 0.04;
constexpr double kLatePercentile = 0.99;
constexpr double kMaxLateness = 1.6;
constexpr double kLeastFirstShare = 0.1;
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

}  // namespace

double DriftingFit::believable(double y, double predicted) {
  const double near = std::clamp(y, predicted / kMaxSurprise, predicted * kMaxSurprise);
  if (near == y) {
    num_surprises_ = 0;
    return y;
  }
  if (++num_surprises_ <= kMaxSurprises) return near;
  const double keep = num_surprises_ == kMaxSurprises + 1 ? kMemoryOfAnother : 1;
  for (double* sum : {&s00_, &s01_, &s11_, &s0y_, &s1y_}) *sum *= keep;
  return y;
}

void DriftingFit::observe(double x0, double x1, double y) {
  y = std::max(y, kNoiseFloor_s);
  double predicted = y;
  if (is_empty_) {
    is_empty_ = false;
    a_ = y / (x0 + x1 / scale_);
    b_ = a_ / scale_;
  } else {
    predicted = std::max(predict(x0, x1), kNoiseFloor_s);
    y = believable(y, predicted);
  }
  const double weight = 1 / (predicted * predicted);
  s00_ = kMemory * s00_ + weight * x0 * x0;
  s01_ = kMemory * s01_ + weight * x0 * x1;
  s11_ = kMemory * s11_ + weight * x1 * x1;
  s0y_ = kMemory * s0y_ + weight * x0 * y;
  s1y_ = kMemory * s1y_ + weight * x1 * y;
  solve();
}

// The normal equations with (a - a_)^2 and (b - b_)^2 added, and the edges a = 0 and b = 0.
void DriftingFit::solve() {
  const double p00 = s00_ * (1 + kInertia), p11 = s11_ * (1 + kInertia);
  const double t0 = s0y_ + kInertia * s00_ * a_, t1 = s1y_ + kInertia * s11_ * b_;
  const double det = p00 * p11 - s01_ * s01_;
  if (!(det > 0)) {  // no x1 was ever seen
    if (p00 > 0) a_ = t0 / p00;
    return;
  }
  a_ = (t0 * p11 - t1 * s01_) / det;
  b_ = (t1 * p00 - t0 * s01_) / det;
  if (a_ < 0) a_ = 0, b_ = t1 / p11;
  if (b_ < 0) b_ = 0, a_ = t0 / p00;
}

void StepBudget::begin(int num_decode_tokens) {
  is_limited_ = has_targets() && num_decode_tokens > 0;
  decode_s_ = decode_.predict(1, num_decode_tokens);
  spent_s_ = expected_s_ = needed_s_ = 0;
  num_spent_ = 0;
  is_late_ = false;
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

double StepBudget::planned_itl_s() const { return targets_.itl_s / lateness_; }

double StepBudget::limit_s() const {
  if (targets_.ttft_s == 0) return planned_itl_s();
  if (targets_.itl_s == 0) return is_late_ ? kNoLimit : needed_s_;
  return std::clamp(needed_s_, planned_itl_s(), kMaxStretch * targets_.itl_s);
}

void StepBudget::observe_lateness(double factor) {
  const double share = factor > lateness_ ? kLatePercentile : kLatePercentile - 1;
  lateness_ = std::clamp(lateness_ + kLatenessStep * share, 1.0, kMaxLateness);
}

double StepBudget::prompt_time(int begin, int num_tokens) const {
  StepWork work;
  work.add_prompt(begin, num_tokens);
  return prompt_.predict(work.num_prompt_tokens, work.num_attended);
}

// The largest n with a * n + b * (begin * n + n^2 / 2) within what is left.
int StepBudget::num_tokens_left(int begin) const {
  if (!is_limited_) return std::numeric_limits<int>::max();
  const int least = num_spent_ > 0 ? 0 : kMinPromptTokens;
  if (prompt_.is_empty()) return least;
  const double limit = limit_s();
  if (limit == kNoLimit) return std::numeric_limits<int>::max();
  const double left = limit - decode_s_ - spent_s_;
  if (left <= 0) return least;
  const double linear = prompt_.a() + prompt_.b() * begin;
  // Written so that it holds for b = 0, too.
  const double root = std::sqrt(linear * linear + 2 * prompt_.b() * left);
  const double n = 2 * left / (linear + root);
  const int most = kMaxGrowth * most_tried_ - num_spent_;
  return std::max(n < most ? static_cast<int>(n) : most, least);
}

void StepBudget::spend(int begin, int num_tokens) {
  spent_s_ += prompt_time(begin, num_tokens);
  num_spent_ += num_tokens;
}

void StepBudget::observe(const StepWork& work, double seconds) {
  if (!has_targets()) return;
  if (work.num_prompt_tokens == 0) {
    if (work.num_decode_tokens > 0) decode_.observe(1, work.num_decode_tokens, seconds);
    return;
  }
  most_tried_ = std::max(most_tried_, work.num_prompt_tokens);
  const double decode_s =
      work.num_decode_tokens > 0 ? decode_.predict(1, work.num_decode_tokens) : 0;
  if (work.num_decode_tokens > 0 && !prompt_.is_empty()) {
    const double prompt_s = prompt_.predict(work.num_prompt_tokens, work.num_attended);
    observe_lateness(seconds / (decode_s + prompt_s + kNoiseFloor_s));
  }
  // A first step that seems to have taken no longer than without its prompt tokens says nothing.
  const double least_s = prompt_.is_empty() ? kLeastFirstShare * seconds : 0;
  prompt_.observe(work.num_prompt_tokens, work.num_attended, std::max(seconds - decode_s, least_s));
}

}  // namespace dunlin
