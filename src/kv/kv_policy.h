// KvPolicy: which of a sequence's cached tokens its queries read, and which the cache keeps: a
// property of a request. Requests of different policies run in one batch.
//
//   full     every token
//   window   the first `sinks` tokens and the newest `window` ones (Xiao et al., "Efficient
//            streaming language models with attention sinks", 2023); the others' blocks go back to
//            the pool, so the text may be longer than the model's context
//   quest    the prompt sees every token; a token of the answer reads of each KV head only the
//            pages (blocks) that can matter most to it, `budget` tokens in all (Tang et al.,
//            "Quest: query-aware sparsity for efficient long-context LLM inference", 2024)
//
// All that others know of a policy is what the functions below say: numbers of tokens and blocks.
// They depend on nothing but absolute positions, so that neither chunking, nor the batch around a
// sequence, nor preemption changes what a token sees.
//
// The window begins at a block's first token, so it moves on by whole blocks: of `window` tokens a
// query sees between window - 15 and window. Layers with a window of their own keep that one.
#pragma once

#include <climits>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"

namespace dunlin {

enum class KvPolicyType { kFull, kWindow, kQuest };
inline constexpr int kNumKvPolicies = 3;

struct KvPolicy {
  KvPolicyType type = KvPolicyType::kFull;
  int sinks = 4;      // kWindow
  int window = 1024;  // kWindow; whole blocks
  int budget = 2048;  // kQuest; whole blocks

  static constexpr int kUnbounded = INT_MAX;

  // A query at `position` sees the first sinks tokens and those from here on; 0: all.
  int first_kept(int position) const;
  // Blocks that a query at `position` reads of each KV head; 0: all.
  int num_pages(int position, int num_prompt_tokens) const;
  // Tokens of which every layer's keys and values are those of full attention, bit for bit. Only
  // their blocks are shared through the prefix cache.
  int num_exact_tokens(int num_prompt_tokens) const;
  bool gives_back() const { return type == KvPolicyType::kWindow; }
  int num_sink_blocks() const;  // at the front of a table, never given back
  // Blocks that a sequence of num_tokens holds at most in a group of full attention, computed in
  // steps of at most max_chunk.
  int max_blocks(int num_tokens, int max_chunk) const;

  bool operator==(const KvPolicy& other) const;
};

// A number of a policy, by the name that it has everywhere, and what it may be.
struct KvPolicyNumber {
  const char* name;
  int* value;
  int min, max, unit;
};
// Those that `policy` has.
std::vector<KvPolicyNumber> numbers_of(KvPolicy& policy);

// kInvalidArgument names the value that is wrong.
Outcome validate(KvPolicy policy);

// "full" or "window,sinks=4,window=1024"; what is left out keeps its default.
Result<KvPolicy> parse_kv_policy(std::string_view text);
// As parse_kv_policy() reads it.
std::string to_string(const KvPolicy& policy);

// "full" and so on; false for an unknown name.
bool parse_kv_policy_type(std::string_view name, KvPolicyType& type);
std::string_view name_of(KvPolicyType type);
std::string kv_policy_names();  // "full, window"

}  // namespace dunlin
