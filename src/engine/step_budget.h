// StepBudget: how many prompt tokens a step may take beside the answers that are being written.
//
// Each stream gets one token a step, so the time of a step is the streams' inter-token time. It is
// predicted as
//   fixed + a * decode tokens  +  b * prompt tokens + c * (sum of the positions that they attend
//   to)
// where the first half is fitted to the steps without prompt tokens and the second to what prompt
// tokens added to the others. Prompt tokens are handed out as long as the predicted time stays
// within a limit:
//   itl_s alone     itl_s
//   ttft_s alone    what the prompts need to get their first tokens in time; none if one is late
//   both            what they need, but at least itl_s and at most kMaxStretch * itl_s
// With both, nothing is stretched for a prompt that is late or can't be in time: under overload
// itl_s wins.
// Steps take longer than predicted now and then. The factor that 99 of 100 stay within is followed,
// and so much less than itl_s is planned, so that 99 of 100 steps stay within itl_s: what a client
// sees adds the server's and the network's delays.
// While nobody decodes there is no limit. Whatever the limit, the first prompt of a step gets
// kMinPromptTokens, so that a target that can't be met stops nobody.
//
// Owned by the engine thread; never allocates.
#pragma once

#include <cstdint>

namespace dunlin {

struct StepTargets {
  double itl_s = 0;   // time between two tokens of a stream; 0: none
  double ttft_s = 0;  // arrival to first token; 0: none
};

// What a step computes, as the prediction sees it.
struct StepWork {
  int num_decode_tokens = 0;
  int num_prompt_tokens = 0;
  double num_attended = 0;  // summed over the prompt tokens

  void add_prompt(int begin, int num_tokens) {
    num_prompt_tokens += num_tokens;
    num_attended += num_tokens * (begin + 0.5 * num_tokens);
  }
};

// y = a * x0 + b * x1 with a, b >= 0 that drift: least squares of relative errors over the last
// twenty observations or so, held to the former a and b where these tell them not apart. An
// observation far from the prediction counts as one that is less far, until some have come in a
// row: then the machine is another.
class DriftingFit {
 public:
  // `scale`: about how many times b goes into a.
  explicit DriftingFit(double scale) : scale_(scale) {}
  void observe(double x0, double x1, double y);
  double predict(double x0, double x1) const { return a_ * x0 + b_ * x1; }
  double a() const { return a_; }
  double b() const { return b_; }
  bool is_empty() const { return is_empty_; }

 private:
  double believable(double y, double predicted);
  void solve();

  double scale_;
  bool is_empty_ = true;
  double a_ = 0, b_ = 0;
  double s00_ = 0, s01_ = 0, s11_ = 0, s0y_ = 0, s1y_ = 0;  // weighted sums of products
  int num_surprises_ = 0;                                   // in a row
};

class StepBudget {
 public:
  static constexpr int kMinPromptTokens = 4;
  static constexpr double kMaxStretch = 2;
  // A step takes at most so many times the prompt tokens that one has taken before: few tokens that
  // seemed to take no time say nothing about many.
  static constexpr int kMaxGrowth = 8;

  explicit StepBudget(const StepTargets& targets) : targets_(targets) {}

  bool has_targets() const { return targets_.itl_s > 0 || targets_.ttft_s > 0; }
  bool wants_prompts() const { return targets_.ttft_s > 0; }

  // Begins a step in which so many streams get a token. Then, where wants_prompts(): each prompt
  // that is not computed yet, in the order in which they will be.
  void begin(int num_decode_tokens);
  void expect_prompt(int begin, int num_tokens, double age_s);

  // Tokens that a prompt computed up to `begin` may take in this step; INT_MAX for no limit.
  int num_tokens_left(int begin) const;
  void spend(int begin, int num_tokens);

  // How long a step took.
  void observe(const StepWork& work, double seconds);

 private:
  double prompt_time(int begin, int num_tokens) const;
  double planned_itl_s() const;
  double limit_s() const;
  void observe_lateness(double factor);

  StepTargets targets_;
  DriftingFit decode_{8};
  DriftingFit prompt_{4096};
  int most_tried_ = kMinPromptTokens;  // prompt tokens of a step
  // Of 100 steps 99 take at most so many times their prediction; at first a guess, since what is
  // right for one step in a hundred takes hundreds of steps to learn.
  double lateness_ = 1.2;

  // Of the current step.
  bool is_limited_ = false;
  double decode_s_ = 0;
  double spent_s_ = 0;
  double expected_s_ = 0;  // of all prompts so far
  double needed_s_ = 0;    // the step that lets every prompt be in time; 0: none asks
  int num_spent_ = 0;
  bool is_late_ = false;  // a prompt can't be in time
};

}  // namespace dunlin
