// FakeModel: a deterministic function of the token history that keeps its state in the paged KV
// cache, through the batch's block tables, as a real model does. A wrong table, slot, position or
// a block that was given away too early gives another token. Also checks the ForwardBatch contract.
//
// Each token's state in a group is mixed from the token, its position and the state of the token
// before it, and where a policy (kv/kv_policy.h) hides tokens from it, also from which ones (or how
// many pages it reads; which ones is not imitated). A row
// of logits is mixed from the states of all positions that the group's window or the policy lets
// the query see. Where a policy keeps tokens by votes, a query gives each token that it sees a vote
// made of both states. fake_row() computes the same without any cache.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/row_maxima.h"
#include "kv/kv_compaction.h"
#include "kv/kv_policy.h"
#include "kv/kv_storage.h"
#include "model/model.h"

namespace dunlin::testing {

inline std::uint64_t fake_mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b + 0x9E3779B97F4A7C15u + (a << 6) + (a >> 2))) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

inline std::uint64_t fake_state(std::uint64_t before, int group_idx, int position, TokenId token) {
  return fake_mix(fake_mix(before, static_cast<std::uint64_t>(group_idx) << 32 |
                                       static_cast<std::uint32_t>(position)),
                  static_cast<std::uint32_t>(token));
}

// Logits in [-4, 4).
inline void fake_logits(std::uint64_t hash, std::span<float> row) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = static_cast<float>(fake_mix(hash, i) >> 40) * 0x1p-21f - 4.0f;
  }
}

inline std::uint64_t fake_hidden_state(std::uint64_t state, int first_kept, int num_sinks) {
  return first_kept == 0 ? state
                         : fake_mix(state, static_cast<std::uint64_t>(first_kept) << 32 |
                                               static_cast<std::uint32_t>(num_sinks));
}

// What the query of one token gives another.
inline float fake_vote(std::uint64_t query, std::uint64_t key) {
  return static_cast<float>(fake_mix(query, key) >> 40) * 0x1p-24f;
}

// The slots of one group of full attention under a policy that compacts, told of each token's
// state in turn.
class FakeSlots {
 public:
  FakeSlots(const KvPolicy& policy, int num_prompt_tokens)
      : policy_(policy), num_prompt_(num_prompt_tokens) {}

  const std::vector<std::uint64_t>& states() const { return states_; }

  // Before the compaction.
  void add(std::uint64_t state) {
    const int position = num_tokens_++;
    states_.push_back(state);
    votes_.push_back(0);
    if (position < policy_.first_vote(num_prompt_) || position >= policy_.end_of_votes(num_prompt_))
      return;
    for (std::size_t i = 0; i < states_.size(); ++i) votes_[i] += fake_vote(state, states_[i]);
  }

  void compact() {
    const auto [from, to, pool] = policy_.compaction(num_tokens_, num_prompt_);
    if (from == to) return;
    std::vector<std::pair<float, int>> order;  // the best first
    for (int i = 0; i < from; ++i) {
      const auto begin = votes_.begin() + std::max(0, i - pool / 2);
      order.emplace_back(
          -*std::max_element(begin, votes_.begin() + std::min(from, i + pool / 2 + 1)), i);
    }
    std::sort(order.begin(), order.end());
    std::set<int> leaves, moves;
    for (int rank = 0; rank < from; ++rank) {
      const int slot = order[static_cast<std::size_t>(rank)].second;
      if (rank < to && slot >= to) moves.insert(slot);
      if (rank >= to && slot < to) leaves.insert(slot);
    }
    for (auto slot = leaves.begin(); const int source : moves) {
      states_[static_cast<std::size_t>(*slot)] = states_[static_cast<std::size_t>(source)];
      votes_[static_cast<std::size_t>(*slot++)] = votes_[static_cast<std::size_t>(source)];
    }
    states_.erase(states_.begin() + to, states_.begin() + from);
    votes_.erase(votes_.begin() + to, votes_.begin() + from);
  }

 private:
  KvPolicy policy_;
  int num_prompt_, num_tokens_ = 0;
  std::vector<std::uint64_t> states_;
  std::vector<float> votes_;
};

// The row behind the last of `tokens`; windows as KvGroup::window, one an entry of the layout. A
// policy's window has at least two blocks.
inline std::vector<float> fake_row(const KvLayout& layout, std::span<const TokenId> tokens,
                                   int vocab_size, const KvPolicy& policy = {},
                                   int num_prompt_tokens = 0) {
  std::uint64_t hash = 1;
  for (int g = 0; g < static_cast<int>(layout.groups.size()); ++g) {
    const int window = layout.groups[static_cast<std::size_t>(g)].window;
    const int last = static_cast<int>(tokens.size()) - 1;
    const int kept = policy.first_kept(last);
    const int first = window == 0 ? kept : std::max(0, last - window + 1);
    std::uint64_t state = 0;
    if (window == 0 && policy.compacts()) {
      FakeSlots slots(policy, num_prompt_tokens);
      for (int p = 0; p <= last; ++p) {
        slots.compact();
        slots.add(state = fake_state(state, g, p, tokens[static_cast<std::size_t>(p)]));
      }
      for (const std::uint64_t seen : slots.states()) hash = fake_mix(hash, seen);
      continue;
    }
    for (int p = 0; p <= last; ++p) {
      state = fake_state(state, g, p, tokens[static_cast<std::size_t>(p)]);
      if (window == 0) {
        state = fake_hidden_state(state, policy.first_kept(p), policy.sinks);
        state = fake_hidden_state(state, policy.num_pages(p, num_prompt_tokens), 0);
      }
      const bool is_sink = window == 0 && kept > 0 && p < policy.sinks;
      if (p >= first || is_sink) hash = fake_mix(hash, state);
    }
  }
  std::vector<float> row(static_cast<std::size_t>(vocab_size));
  fake_logits(hash, row);
  return row;
}

class FakeModel final : public Model {
 public:
  static constexpr int kHiddenSize = 24;

  // One layer for each window; 0 is full attention.
  explicit FakeModel(std::vector<int> windows, int vocab_size = 61, int context_length = 4096)
      : layout_(KvLayout::make(windows, 1, 8, 8, KvFormat::kF16)),
        limits_{.vocab_size = vocab_size,
                .context_length = context_length,
                .hidden_size = kHiddenSize,
                .has_open_positions = true} {}

  const ModelLimits& limits() const override { return limits_; }
  const KvLayout& kv_layout() const override { return layout_; }
  ModelCounters counters() const override { return {num_forwards_, 0}; }

  void reserve(int max_tokens, int max_seqs, int max_outputs) override {
    max_tokens_ = max_tokens;
    max_seqs_ = max_seqs;
    max_outputs_ = max_outputs;
  }

  void forward(const ForwardBatch& batch, KvStorage& kv, const ForwardOutputs& outputs) override {
    const auto [logits, maxima, hidden] = outputs;
    if (before_forward) before_forward(batch);
    ++num_forwards_;
    check(batch, logits);
    hashes_.assign(static_cast<std::size_t>(batch.num_outputs()), 1);
    hidden_hashes_.assign(static_cast<std::size_t>(batch.num_hidden()), 1);
    for (int g = 0; g < static_cast<int>(batch.groups.size()); ++g) run_group(batch, kv, g);
    for (std::size_t i = 0; i < hidden_hashes_.size(); ++i)
      fake_logits(hidden_hashes_[i], hidden.subspan(i * kHiddenSize, kHiddenSize));
    const auto vocab = static_cast<std::size_t>(limits_.vocab_size);
    for (std::size_t i = 0; i < hashes_.size(); ++i) {
      const std::span<float> row = logits.subspan(i * vocab, vocab);
      fake_logits(hashes_[i], row);
      if (maxima.empty()) continue;
      row_maxima(row.data(), vocab, maxima.data() + i * maxima_size(vocab));
    }
  }

  // Called at the start of each forward, on the engine thread.
  std::function<void(const ForwardBatch&)> before_forward;
  // Off for tests that count allocations: the check needs sets.
  bool check_slots = true;

 private:
  static std::uint64_t& at(std::vector<std::uint64_t>& v, int i) {
    return v[static_cast<std::size_t>(i)];
  }

  void check(const ForwardBatch& batch, std::span<const float> logits) const {
    DUNLIN_CHECK(batch.num_tokens() > 0 && batch.num_tokens() <= max_tokens_, "num_tokens");
    DUNLIN_CHECK(batch.num_seqs() > 0 && batch.num_seqs() <= max_seqs_, "num_seqs");
    DUNLIN_CHECK(batch.num_outputs() <= max_outputs_, "num_outputs");
    DUNLIN_CHECK(batch.positions.size() == batch.token_ids.size(), "positions");
    DUNLIN_CHECK(batch.query_start_loc.size() == batch.seq_lens.size() + 1, "query_start_loc");
    DUNLIN_CHECK(batch.groups.size() == layout_.groups.size(), "groups");
    DUNLIN_CHECK(std::is_sorted(batch.logits_indices.begin(), batch.logits_indices.end()),
                 "logits_indices");
    DUNLIN_CHECK(
        logits.size() == batch.logits_indices.size() * static_cast<std::size_t>(limits_.vocab_size),
        "logits");
    for (const TokenId token : batch.token_ids) {
      DUNLIN_CHECK(token >= 0 && token < limits_.vocab_size, "token_ids");
    }
    if (!check_slots) return;
    std::set<std::int64_t> written;
    for (const auto& group : batch.groups) {
      for (const std::int64_t slot : group.slot_mapping) {
        DUNLIN_CHECK(written.insert(slot).second, "two tokens write one slot");
      }
    }
    for (const auto& group : batch.groups) {
      for (int s = 0; s < batch.num_seqs(); ++s) {
        // What another sequence reads is not written in this step.
        const int begin = batch.query_start_loc[static_cast<std::size_t>(s)];
        const int end = batch.query_start_loc[static_cast<std::size_t>(s) + 1];
        const bool is_full =
            layout_.groups[static_cast<std::size_t>(&group - batch.groups.data())].window == 0;
        const int first = num_slots(batch, s, is_full) - (end - begin);
        for (int p = 0; p < first; ++p) {
          const std::int32_t block = table_entry(group, s, p);
          if (block < 0) continue;
          DUNLIN_CHECK(!written.contains(std::int64_t{block} * kBlockSize + p % kBlockSize),
                       "a computed slot is written again");
        }
      }
    }
  }

  // Of a sequence behind this step.
  static int num_slots(const ForwardBatch& batch, int seq, bool is_full) {
    const auto lens = is_full && !batch.slot_lens.empty() ? batch.slot_lens : batch.seq_lens;
    return lens[static_cast<std::size_t>(seq)];
  }

  static std::int32_t table_entry(const ForwardBatch::Group& group, int seq, int position) {
    return group.block_tables[static_cast<std::size_t>(seq * group.max_blocks_per_seq +
                                                       position / kBlockSize)];
  }

  // The 64-bit state of a slot lies in the first four dimensions of its key.
  static void copy_state(const PagedKvLayer& layer, std::int64_t slot, std::uint64_t* state,
                         bool write) {
    std::uint16_t parts[4];
    std::memcpy(parts, state, sizeof parts);
    std::byte* block = layer.base + slot / kBlockSize * layer.block_stride + layer.k_offset;
    for (int d = 0; d < 4; ++d) {
      std::byte* at = block + (d * kBlockSize + slot % kBlockSize) * 2;
      if (write) {
        std::memcpy(at, &parts[d], 2);
      } else {
        std::memcpy(&parts[d], at, 2);
      }
    }
    std::memcpy(state, parts, sizeof parts);
  }

  void run_group(const ForwardBatch& batch, KvStorage& kv, int g) {
    const KvGroup& kv_group = layout_.groups[static_cast<std::size_t>(g)];
    const PagedKvLayer layer = kv.layer(kv_group.layers[0]);
    const ForwardBatch::Group& group = batch.groups[static_cast<std::size_t>(g)];
    std::size_t output = 0, hidden = 0;
    for (int s = 0; s < batch.num_seqs(); ++s) {
      const int begin = batch.query_start_loc[static_cast<std::size_t>(s)];
      const int end = batch.query_start_loc[static_cast<std::size_t>(s) + 1];
      DUNLIN_CHECK(begin < end, "each sequence has a token");
      const int first = num_slots(batch, s, kv_group.window == 0) - (end - begin);
      const int dropped = batch.seq_lens[static_cast<std::size_t>(s)] - (end - begin) - first;
      const auto voter = std::find_if(batch.voters.begin(), batch.voters.end(),
                                      [s](const auto& v) { return v.seq == s; });
      const bool votes = voter != batch.voters.end() && kv_group.window == 0;
      const int full_idx = g * layout_.layers_per_block;
      const auto read = [&](int position) {
        const std::int32_t block = table_entry(group, s, position);
        DUNLIN_CHECK(block >= 0, "a position that is read has no block");
        std::uint64_t state = 0;
        copy_state(layer, std::int64_t{block} * kBlockSize + position % kBlockSize, &state, false);
        return state;
      };
      for (int t = begin; t < end; ++t) {
        const int p = first + t - begin;
        const auto i = static_cast<std::size_t>(t);
        DUNLIN_CHECK(batch.positions[i] == p + dropped, "positions");
        DUNLIN_CHECK(
            kv_group.window > 0 || batch.slot_positions.empty() || batch.slot_positions[i] == p,
            "slot_positions");
        DUNLIN_CHECK(group.slot_mapping[i] / kBlockSize == table_entry(group, s, p) &&
                         group.slot_mapping[i] % kBlockSize == p % kBlockSize,
                     "slot_mapping");
        const bool is_full = kv_group.window == 0 && !batch.kept.is_empty();
        const int kept = is_full ? batch.kept.first[i] : 0;
        const int num_sinks = kept == 0 ? 0 : batch.kept.num_sinks[static_cast<std::size_t>(s)];
        DUNLIN_CHECK(kept == 0 || batch.kept.sink_positions[i] == p - kept + num_sinks,
                     "sink_positions");
        std::uint64_t state = fake_hidden_state(
            fake_state(p == 0 ? 0 : read(p - 1), g, p + dropped, batch.token_ids[i]), kept,
            num_sinks);
        if (kv_group.window == 0 && !batch.page_budgets.empty())
          state = fake_hidden_state(state, batch.page_budgets[i], 0);
        copy_state(layer, group.slot_mapping[i], &state, true);
        for (int q = 0; votes && q <= p; ++q)
          voter->votes->of_head(full_idx, 0)[static_cast<std::size_t>(q)] +=
              fake_vote(state, read(q));
        const int from = kv_group.window == 0 ? kept : std::max(0, p - kv_group.window + 1);
        const auto mix = [&](std::span<const std::int32_t> wanted, std::size_t& next,
                             std::vector<std::uint64_t>& hashes) {
          if (next == hashes.size() || wanted[next] != t) return;
          std::uint64_t& hash = hashes[next++];
          for (int q = 0; q < num_sinks; ++q) hash = fake_mix(hash, read(q));
          for (int q = from; q <= p; ++q) hash = fake_mix(hash, read(q));
        };
        mix(batch.logits_indices, output, hashes_);
        mix(batch.hidden_indices, hidden, hidden_hashes_);
      }
      if (votes && !voter->compaction.is_none()) {
        KvCompactionScratch scratch;
        compact_head(layer, 0, group.block_tables.data() + s * group.max_blocks_per_seq,
                     voter->compaction, voter->votes->of_head(full_idx, 0), scratch);
      }
    }
  }

  KvLayout layout_;
  ModelLimits limits_;
  int max_tokens_ = 0;
  int max_seqs_ = 0;
  int max_outputs_ = 0;
  std::uint64_t num_forwards_ = 0;
  std::vector<std::uint64_t> hashes_, hidden_hashes_;
};

}  // namespace dunlin::testing
