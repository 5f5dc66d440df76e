// A transformer: token ids in, logits or hidden states out. Knows nothing of requests or text.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/function_ref.h"
#include "dunlin/pooling.h"
#include "dunlin/status.h"
#include "kv/kv_layout.h"
#include "model/forward_batch.h"

namespace dunlin {

class KvStorage;

// Sizes the engine needs before the first step.
struct ModelLimits {
  int vocab_size = 0;
  int context_length = 0;  // trained context, tokens
  int hidden_size = 0;
  // Every token sees the whole text, which so runs in one step, and there is no head: hidden states
  // only.
  bool is_encoder = false;
  // There is no limit to positions but training: what is far away may be given up (kv_policy.h).
  bool has_open_positions = false;
  Pooling pooling = Pooling::kLast;  // what the checkpoint's embeddings are made of
};

// Where a step's results go.
struct ForwardOutputs {
  std::span<float> logits;    // [num_outputs, vocab_size]
  std::span<float> maxima{};  // empty, or [num_outputs, maxima_size(vocab_size)] of the logits
                              // (base/row_maxima.h)
  std::span<float> hidden{};  // [num_hidden, hidden_size]
};

// What a model has done so far.
struct ModelCounters {
  std::uint64_t num_forwards = 0;
  std::uint64_t weight_bytes_read = 0;  // by linear layers: each matrix once a forward that uses it
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelLimits& limits() const = 0;
  virtual const KvLayout& kv_layout() const = 0;

  virtual ModelCounters counters() const { return {}; }

  // Scratch bytes for steps of at most max_tokens tokens and max_outputs logit rows; allocates
  // them, so that forward() allocates nothing. Called before the first forward();
  // calling it again changes the sizes.
  virtual void reserve(int max_tokens, int max_seqs, int max_outputs) = 0;

  // Computes the batch, writes its K and V into `kv`, and fills in `outputs`. Called from one
  // thread, the one that owns the model's thread pool.
  virtual void forward(const ForwardBatch& batch, KvStorage& kv, const ForwardOutputs& outputs) = 0;

  // The model's compute threads, for other work of the thread that calls forward(): calls
  // fn(chunk_idx) once for each chunk in [0, num_chunks), in any order, and returns when all are
  // done. fn must not throw.
  virtual int num_threads() const { return 1; }
  virtual void parallel_for(int num_chunks, FunctionRef<void(int chunk_idx)> fn) {
    for (int i = 0; i < num_chunks; ++i) fn(i);
  }
};

}  // namespace dunlin
