// One fact hidden in a long text, asked for at its end: which of the facts are found, by how long
// the text is and how deep the fact lies in it. The pass key is that of Mohtashami and Jaggi
// ("Landmark Attention", 2023), the grid that of "needle in a haystack" tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dunlin/status.h"
#include "eval/request_runner.h"
#include "eval/task_prompt.h"

namespace dunlin::eval {

enum class NeedleTask {
  kPasskey,  // "The pass key is 48213. ..."; five digits
  kNeedle,   // "The secret word of Mara the gardener is silver heron."; two words
};

struct NeedleOptions {
  NeedleTask task = NeedleTask::kPasskey;
  std::vector<int> lengths;    // tokens of prompt and answer
  std::vector<double> depths;  // of the fact: 0 the beginning, 1 the end of the text
  int num_samples = 5;         // facts and texts of each length and depth
  std::uint64_t seed = 0;
  bool as_chat = false;
};

struct Fact {
  std::string sentence;  // what is hidden
  std::string question, answer_start;
  std::string answer;
};
Fact draw_fact(NeedleTask task, std::uint64_t seed, std::uint64_t item);

// The prompt with `fact` at `depth` of text `stream`, as long as max_tokens allow; equal beginnings
// for all depths and lengths up to the fact. kInvalidArgument where not one sentence of text fits.
Result<std::vector<TokenId>> needle_prompt(const Session& session, const Fact& fact,
                                           std::uint64_t seed, std::uint32_t stream, double depth,
                                           int max_tokens, bool as_chat);

struct NeedleGrid {
  std::vector<int> lengths;
  std::vector<double> depths;
  int num_samples = 0;
  std::vector<int> num_found;  // [depths, lengths]

  double share(std::size_t depth_idx, std::size_t length_idx) const {
    return static_cast<double>(num_found[depth_idx * lengths.size() + length_idx]) / num_samples;
  }
  double share_of_length(std::size_t length_idx) const;
  double share_of_all() const;
};

Result<NeedleGrid> measure_needles(Session& session, const NeedleOptions& options,
                                   const Progress& progress);

}  // namespace dunlin::eval
