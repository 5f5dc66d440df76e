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
//   h2o      each KV head keeps `budget` tokens: the `recent` newest ones, and of the others those
//            that got most attention so far (Zhang et al., "H2O: heavy-hitter oracle for efficient
//            generative inference of large language models", 2023)
//   snapkv   at the end of the prompt each KV head keeps `budget` tokens of it: the last `window`
//            ones, and of the others those that these paid most attention to, neighbours counted
//            in; the answer is added to them (Li et al., "SnapKV: LLM knows what you are looking
//            for before generation", 2024)
//
// All that others know of a policy is what the functions below say: numbers of tokens and blocks.
// They depend on nothing but absolute positions, so that neither chunking, nor the batch around a
// sequence, nor preemption changes what a token sees.
//
// Tokens that h2o and snapkv drop leave their slots: of the first slots of a sequence each KV head
// moves those that it keeps to the front (KvCompaction), and the blocks behind go back to the pool.
// So a sequence has fewer slots than tokens, in layers of full attention, and which token a slot
// holds is each head's own. What stays is attended to as before, with the positions of its tokens.
// Compactions happen at fixed numbers of tokens, and no step goes past one.
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

enum class KvPolicyType { kFull, kWindow, kQuest, kH2o, kSnapKv };
inline constexpr int kNumKvPolicies = 5;

// Of the slots [0, from) of a sequence each KV head keeps the `to` with most votes, in the slots
// [0, to); those behind move up. Whole blocks. A slot counts by the most votes among the `pool`
// slots around it.
struct KvCompaction {
  int from = 0, to = 0, pool = 1;

  bool is_none() const { return from == to; }
  int num_dropped() const { return from - to; }
};

struct KvPolicy {
  KvPolicyType type = KvPolicyType::kFull;
  int sinks = 4;      // kWindow
  int window = 1024;  // kWindow; whole blocks
  int budget = 2048;  // kQuest, kH2o, kSnapKv; whole blocks
  int share = 0;      // kH2o: the budget in hundredths of the prompt instead, where it isn't 0
  int recent = 0;     // kH2o: of the budget; whole blocks; 0: half
  int observed = 32;  // kSnapKv: tokens at the prompt's end that vote, its "window"; whole blocks
  int pool = 7;       // kSnapKv: odd

  static constexpr int kUnbounded = INT_MAX;

  // A query at `position` sees the first sinks tokens and those from here on; 0: all.
  int first_kept(int position) const;
  // Blocks that a query at `position` reads of each KV head; 0: all.
  int num_pages(int position, int num_prompt_tokens) const;
  // Tokens of which every layer's keys and values are those of full attention, bit for bit. Only
  // their blocks are shared through the prefix cache.
  int num_exact_tokens(int num_prompt_tokens) const;
  // The first position whose query votes for what is kept (kernels/attention_votes.h), and the
  // first behind them. The votes of the tokens before it are not missed: each of theirs is voted on
  // by all that follow. kUnbounded: none.
  int first_vote(int num_prompt_tokens) const;
  int end_of_votes(int num_prompt_tokens) const;
  // What happens when so many tokens are computed; {} for most numbers.
  KvCompaction compaction(int num_tokens, int num_prompt_tokens) const;
  int num_targets(int num_prompt_tokens) const;  // `to` of all of them; 0 where there are none
  // Slots of so many tokens in layers of full attention, behind that compaction.
  int num_slots(int num_tokens, int num_prompt_tokens) const;
  // A step that begins behind so many tokens ends here or before: at a compaction, or where votes
  // begin.
  int step_end(int num_tokens, int num_prompt_tokens) const;
  // Slots that are voted on at most.
  int max_voted_slots(int num_prompt_tokens) const;
  bool compacts() const { return type == KvPolicyType::kH2o || type == KvPolicyType::kSnapKv; }
  bool gives_back() const { return type == KvPolicyType::kWindow; }
  int num_sink_blocks() const;  // at the front of a table, never given back
  // Blocks that a sequence of num_tokens holds at most in a group of full attention, computed in
  // steps of at most max_chunk.
  int max_blocks(int num_tokens, int max_chunk) const;

  bool operator==(const KvPolicy& other) const;

 private:
  struct Heavy;
  Heavy heavy(int num_prompt_tokens) const;
};

// A number of a policy, by the name that it has everywhere, and what it may be.
struct KvPolicyNumber {
  const char* name;
  int* value;
  int min, max, unit;    // min and any number of units more
  int* share = nullptr;  // where the number may be given in hundredths instead, as "20%"
};
// "a multiple of 16 in [16, 1048576]".
std::string range_of(const KvPolicyNumber& number);
// Those that `policy` has. What one may be can depend on those before it.
std::vector<KvPolicyNumber> numbers_of(KvPolicy& policy);

// kInvalidArgument names the value that is wrong.
Outcome validate(KvPolicy policy);

// "full", "window,sinks=4,window=1024" or "h2o,budget=20%"; what is left out keeps its default.
Result<KvPolicy> parse_kv_policy(std::string_view text);
// As parse_kv_policy() reads it.
std::string to_string(const KvPolicy& policy);

// "full" and so on; false for an unknown name.
bool parse_kv_policy_type(std::string_view name, KvPolicyType& type);
std::string_view name_of(KvPolicyType type);
std::string kv_policy_names();  // "full, window"

}  // namespace dunlin
