#include "loadgen/workload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "loadgen/dataset.h"
#include "loadgen/random_draws.h"

namespace dunlin::loadgen {
namespace {

constexpr std::array<std::string_view, 128> kWords = {
    "the",   "of",    "and",     "to",    "in",    "is",     "that",    "for",    "it",
    "as",    "was",   "with",    "be",    "by",    "on",     "not",     "he",     "this",
    "are",   "or",    "his",     "from",  "at",    "which",  "but",     "have",   "an",
    "had",   "they",  "you",     "were",  "their", "one",    "all",     "we",     "can",
    "her",   "has",   "there",   "been",  "if",    "more",   "when",    "will",   "would",
    "who",   "so",    "no",      "she",   "other", "its",    "may",     "these",  "what",
    "them",  "than",  "some",    "him",   "time",  "into",   "only",    "do",     "such",
    "my",    "new",   "about",   "out",   "also",  "two",    "any",     "up",     "first",
    "could", "our",   "then",    "most",  "see",   "me",     "should",  "after",  "said",
    "your",  "very",  "between", "made",  "many",  "over",   "like",    "those",  "did",
    "now",   "even",  "well",    "where", "must",  "people", "through", "how",    "same",
    "work",  "being", "because", "man",   "life",  "before", "each",    "much",   "under",
    "years", "way",   "great",   "state", "both",  "use",    "upon",    "own",    "used",
    "world", "us",    "long",    "does",  "place", "house",  "system",  "during", "number",
    "part",  "water"};

// Lengths as in conversations that people shared: Kwon et al. (SOSP 2023, section 6.1) found 161
// tokens in and 338 out on average, with long tails. Log-normals of those means, cut as there.
constexpr double kShareGptInputMean = 161, kShareGptInputSigma = 1.1;
constexpr double kShareGptOutputMean = 338, kShareGptOutputSigma = 0.8;
constexpr int kShareGptLeast = 4, kShareGptMost = 1024;

int log_normal_length(std::uint64_t seed, Draw draw, std::uint64_t index, double mean,
                      double sigma) {
  const double mu = std::log(mean) - sigma * sigma / 2;
  const double length = std::exp(mu + sigma * draw_normal(seed, draw, index));
  return static_cast<int>(std::clamp<double>(length, kShareGptLeast, kShareGptMost));
}

// Appends `count` generated tokens.
void append_prompt(LoadRequest& request, int count, const WorkloadSpec& spec,
                   std::uint32_t stream) {
  request.prompt_len += count;
  if (!spec.form.as_ids) {
    if (!request.text.empty()) request.text += ' ';
    request.text += random_words(count, spec.seed, stream);
    return;
  }
  for (int i = 0; i < count; ++i)
    request.ids.push_back(draw_between(spec.seed, stream, static_cast<std::uint64_t>(i),
                                       spec.form.first_id, spec.form.last_id));
}

void generate(const WorkloadSpec& spec, std::vector<LoadRequest>& requests) {
  requests.resize(static_cast<std::size_t>(spec.num_requests));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    LoadRequest& request = requests[i];
    int input =
        draw_between(spec.seed, Draw::kPromptLen, i, spec.input_len.least, spec.input_len.most);
    request.max_tokens =
        draw_between(spec.seed, Draw::kOutputLen, i, spec.output_len.least, spec.output_len.most);
    if (spec.kind == WorkloadKind::kShareGpt) {
      input = log_normal_length(spec.seed, Draw::kPromptLen, i, kShareGptInputMean,
                                kShareGptInputSigma);
      if (!spec.has_output_len)
        request.max_tokens = log_normal_length(spec.seed, Draw::kOutputLen, i, kShareGptOutputMean,
                                               kShareGptOutputSigma);
    } else if (spec.prefix_len > 0) {
      const int which = draw_between(spec.seed, Draw::kPrefix, i, 0, spec.num_prefixes - 1);
      append_prompt(request, spec.prefix_len, spec, kPrefixes + static_cast<std::uint32_t>(which));
    }
    append_prompt(request, input, spec, kPrompts + static_cast<std::uint32_t>(i));
  }
}

// A quarter of those who leave do so soon, where the answer may not have begun; the others at a
// moment spread evenly over it.
void choose_leavers(const WorkloadSpec& spec, std::vector<LoadRequest>& requests) {
  constexpr int kSoonMs = 200;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto stream = static_cast<std::uint32_t>(Draw::kLeave);
    if (uniform_at(spec.seed, stream, 3 * i) >= spec.leave_share) continue;
    LoadRequest& request = requests[i];
    if (uniform_at(spec.seed, stream, 3 * i + 1) < .25) {
      request.leave_after_ms = draw_between(spec.seed, stream, 3 * i + 2, 1, kSoonMs);
    } else {
      request.leave_after_pieces =
          draw_between(spec.seed, stream, 3 * i + 2, 1, std::max(request.max_tokens - 1, 1));
    }
  }
}

}  // namespace

std::vector<double> poisson_arrivals(int count, double rate, std::uint64_t seed) {
  std::vector<double> times(static_cast<std::size_t>(count));
  if (std::isinf(rate)) return times;
  double now = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    times[i] = now;  // the first comes at once
    now += draw_exponential(seed, Draw::kArrival, i) / rate;
  }
  return times;
}

std::string random_words(int count, std::uint64_t seed, std::uint32_t stream) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    if (i > 0) text += ' ';
    text += kWords[static_cast<std::size_t>(
        draw_between(seed, stream, static_cast<std::uint64_t>(i), 0, kWords.size() - 1))];
  }
  return text;
}

Result<std::vector<LoadRequest>> make_workload(const WorkloadSpec& spec) {
  std::vector<LoadRequest> requests;
  if (spec.kind == WorkloadKind::kReplay) {
    DUNLIN_ASSIGN(trace, read_trace(spec.dataset, spec.num_requests));
    requests = std::move(trace);
  } else if (spec.kind == WorkloadKind::kShareGpt && !spec.dataset.empty()) {
    DUNLIN_ASSIGN(sampled, read_sharegpt(spec.dataset, spec.num_requests, spec.seed));
    requests = std::move(sampled);
  } else {
    generate(spec, requests);
  }
  const bool has_arrivals = spec.kind == WorkloadKind::kReplay;
  const auto arrivals =
      poisson_arrivals(static_cast<int>(requests.size()), spec.request_rate, spec.seed);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    LoadRequest& request = requests[i];
    request.arrival_s = has_arrivals ? request.arrival_s / spec.speed : arrivals[i];
    if (request.max_tokens <= 0 || (spec.has_output_len && !spec.dataset.empty()))
      request.max_tokens =
          draw_between(spec.seed, Draw::kOutputLen, i, spec.output_len.least, spec.output_len.most);
    const bool is_empty = request.ids.empty() && request.text.empty() && request.messages.empty();
    if (is_empty) {  // a trace that tells lengths only
      const int count = std::exchange(request.prompt_len, 0);
      append_prompt(request, count, spec, kPrompts + static_cast<std::uint32_t>(i));
    }
  }
  choose_leavers(spec, requests);
  return requests;
}

std::vector<LoadRequest> make_warmup(const std::vector<LoadRequest>& workload, int count,
                                     const WorkloadSpec& spec) {
  WorkloadSpec other = spec;
  other.seed = ~spec.seed;
  std::vector<LoadRequest> requests(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < requests.size() && !workload.empty(); ++i) {
    const LoadRequest& like = workload[i % workload.size()];
    append_prompt(requests[i], std::max(like.prompt_len, 1), other,
                  kPrompts + static_cast<std::uint32_t>(i));
    requests[i].max_tokens = like.max_tokens;
  }
  return requests;
}

}  // namespace dunlin::loadgen
