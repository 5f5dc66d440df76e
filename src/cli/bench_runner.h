// Measures a model without the engine: the same forward() that serves requests, no tokenizer, no
// sampler. Random tokens of a fixed seed.
#pragma once

#include <cstdint>
#include <vector>

#include "base/function_ref.h"
#include "model/model.h"

namespace dunlin::cli {

// One row of `dunlin bench`: n_prompt tokens in steps of the batch size or n_gen tokens one by one,
// behind n_depth tokens of context, by a model that was opened with n_threads.
struct BenchTest {
  int n_prompt = 0;
  int n_gen = 0;
  int n_depth = 0;
  int n_threads = 0;
};

struct BenchResult {
  BenchTest test;
  std::vector<double> seconds;    // a repetition each
  double weight_bytes_per_s = 0;  // of the fastest repetition
  double ops_per_s = 0;           // multiplications and additions of the linear layers
  int num_tokens() const { return test.n_prompt + test.n_gen; }
  double tokens_per_s_mean() const;
  double tokens_per_s_stddev() const;  // of the repetitions, n - 1
};

struct BenchShape {
  int batch_tokens = 512;  // tokens of a prefill step
  int repetitions = 5;
  bool no_kv_cache = false;        // the contrast: each generated token computes all tokens again
  std::int64_t layer_weights = 0;  // elements of the layers' matrices
  std::int64_t head_weights = 0;   // elements of the output matrix
};

BenchResult run_bench(Model& model, const BenchTest& test, const BenchShape& shape);

// One row of `dunlin bench batched`: n_seqs prompts of n_prompt tokens, then n_gen tokens of each,
// all sequences in every step.
struct BatchedResult {
  int n_prompt = 0, n_gen = 0, n_seqs = 0;
  double prefill_s = 0, decode_s = 0;
  double weight_bytes_per_s = 0;  // of the decode steps
  double ops_per_s = 0;           // of the decode steps
};
BatchedResult run_batched_bench(Model& model, int n_prompt, int n_gen, int n_seqs,
                                const BenchShape& shape);

}  // namespace dunlin::cli
