// What a benchmark asks for: prompts, answers' lengths, times of arrival. Deterministic by seed.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "dunlin/status.h"
#include "dunlin/types.h"

namespace dunlin::loadgen {

struct LoadRequest {
  double arrival_s = 0;  // since the start
  // One of the three: token ids, text, or chat messages as a JSON array.
  std::vector<TokenId> ids;
  std::string text;
  std::string messages;
  int prompt_len = 0;  // tokens, as far as they are known before the server counts them
  int max_tokens = 0;
  // The client leaves when so many pieces of the answer have come, or so many milliseconds have
  // passed; -1: it stays.
  int leave_after_pieces = -1;
  int leave_after_ms = -1;
};

struct LengthRange {
  int least = 0;
  int most = 0;  // included
};

enum class WorkloadKind { kRandom, kSharedPrefix, kShareGpt, kReplay };

// How generated prompts are written down.
struct PromptForm {
  bool as_ids = false;  // else English words, each about a token
  TokenId first_id = 1000;
  TokenId last_id = 19'999;  // included
};

struct WorkloadSpec {
  WorkloadKind kind = WorkloadKind::kRandom;
  int num_requests = 100;
  std::uint64_t seed = 0;
  LengthRange input_len{512, 512};  // of kSharedPrefix: without the prefix
  LengthRange output_len{128, 128};
  bool has_output_len = false;  // said by the user: counts for kShareGpt and kReplay too
  int prefix_len = 0;
  int num_prefixes = 1;
  std::string dataset;  // of kShareGpt ("": lengths of that shape) and kReplay
  PromptForm form;
  double request_rate = std::numeric_limits<double>::infinity();  // a second; not for kReplay
  double speed = 1;        // kReplay: times of arrival are divided by this
  double leave_share = 0;  // of the clients that leave before their answer is whole
};

// The requests in order of arrival. Errors name the dataset's line or entry.
Result<std::vector<LoadRequest>> make_workload(const WorkloadSpec& spec);

// `count` requests to warm up with: like the first of `workload` in length, but of other words, so
// that nothing of it is cached.
std::vector<LoadRequest> make_warmup(const std::vector<LoadRequest>& workload, int count,
                                     const WorkloadSpec& spec);

// A Poisson process: `count` times in seconds, ascending, with `rate` a second; all 0 where it is
// infinite.
std::vector<double> poisson_arrivals(int count, double rate, std::uint64_t seed);

// English words, about one token each in the vocabularies of today.
std::string random_words(int count, std::uint64_t seed, std::uint32_t stream);

}  // namespace dunlin::loadgen
