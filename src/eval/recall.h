// Recall of keys and values: a list of random "key: number" lines, then some of the keys again, one
// a request; which share of their numbers comes back. Associative recall, which small models can
// do ("In-context Learning and Induction Heads", Olsson et al. 2022; "Zoology", Arora et al. 2023).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dunlin/status.h"
#include "eval/estimate.h"
#include "eval/request_runner.h"
#include "eval/task_prompt.h"

namespace dunlin::eval {

struct RecallOptions {
  std::vector<int> num_pairs;  // lines of a list
  int num_queries = 16;        // keys asked for, of each list; all where a list has fewer
  int num_samples = 4;         // lists of each length
  std::uint64_t seed = 0;
  bool as_chat = false;
};

struct KeyValueList {
  std::vector<std::pair<std::string, std::string>> pairs;  // different keys; four digits

  std::string text() const;  // the lines
};
// List `stream`; a longer one begins as a shorter one does.
KeyValueList draw_list(std::uint64_t seed, std::uint32_t stream, int num_pairs);
// `count` different lines of [0, num_pairs), at random.
std::vector<int> draw_queries(std::uint64_t seed, std::uint32_t stream, int num_pairs, int count);

struct RecallRow {
  int num_pairs = 0;
  double num_tokens = 0;  // of a prompt, mean
  Estimate recall;        // share of right numbers
  int num_queries = 0;    // in all
};

// kInvalidArgument where a list is longer than the context.
Result<std::vector<RecallRow>> measure_recall(Session& session, const RecallOptions& options,
                                              const Progress& progress);

}  // namespace dunlin::eval
