#include "model/sequence_set.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace dunlin {
namespace {

int blocks_of(int num_tokens) { return (num_tokens + kBlockSize - 1) / kBlockSize; }

}  // namespace

SequenceSet::SequenceSet(Model& model, int num_seqs, int max_context, int max_step_tokens,
                         int max_outputs)
    : model_(model),
      kv_(model.kv_layout(), static_cast<std::int32_t>(model.kv_layout().groups.size()) * num_seqs *
                                 blocks_of(max_context)),
      max_blocks_(blocks_of(max_context)),
      lengths_(static_cast<std::size_t>(num_seqs), 0) {
  const std::size_t num_groups = model.kv_layout().groups.size();
  std::int32_t next_block = 0;
  tables_.resize(num_groups);
  for (std::vector<std::int32_t>& table : tables_) {
    table.resize(static_cast<std::size_t>(num_seqs) * static_cast<std::size_t>(max_blocks_));
    for (std::int32_t& block : table) block = next_block++;
  }
  batch_tables_.resize(num_groups);
  slots_.resize(num_groups);
  logits_.resize(static_cast<std::size_t>(max_outputs) *
                 static_cast<std::size_t>(model.limits().vocab_size));
  model.reserve(max_step_tokens, num_seqs, max_outputs);
}

void SequenceSet::add_group(std::size_t group_idx, std::span<const Part> parts) {
  const std::vector<std::int32_t>& table = tables_[group_idx];
  std::vector<std::int32_t>& batch_table = batch_tables_[group_idx];
  std::vector<std::int64_t>& slots = slots_[group_idx];
  batch_table.clear();
  slots.clear();
  for (const Part& part : parts) {
    const auto row = table.begin() + std::ptrdiff_t{part.seq_idx} * max_blocks_;
    batch_table.insert(batch_table.end(), row, row + max_blocks_);
    const std::int32_t end = num_tokens(part.seq_idx);
    for (std::int32_t at = end - static_cast<std::int32_t>(part.ids.size()); at < end; ++at) {
      slots.push_back(std::int64_t{row[at / kBlockSize]} * kBlockSize + at % kBlockSize);
    }
  }
}

std::span<const float> SequenceSet::step(std::span<const Part> parts) {
  token_ids_.clear();
  positions_.clear();
  query_start_loc_.assign(1, 0);
  seq_lens_.clear();
  logits_indices_.clear();
  hidden_indices_.clear();
  for (const Part& part : parts) {
    std::int32_t& length = lengths_[static_cast<std::size_t>(part.seq_idx)];
    const auto first_row = static_cast<std::int32_t>(token_ids_.size());
    for (const std::int32_t wanted : part.wanted) logits_indices_.push_back(first_row + wanted);
    for (const std::int32_t wanted : part.wanted_hidden)
      hidden_indices_.push_back(first_row + wanted);
    token_ids_.insert(token_ids_.end(), part.ids.begin(), part.ids.end());
    for (std::size_t i = 0; i < part.ids.size(); ++i) positions_.push_back(length++);
    DUNLIN_CHECK(length <= max_blocks_ * kBlockSize, "a sequence outgrew its blocks");
    query_start_loc_.push_back(static_cast<std::int32_t>(token_ids_.size()));
    seq_lens_.push_back(length);
  }
  std::vector<ForwardBatch::Group> groups(tables_.size());
  for (std::size_t g = 0; g < tables_.size(); ++g) {
    add_group(g, parts);
    groups[g] = {batch_tables_[g], max_blocks_, slots_[g]};
  }
  ForwardBatch batch;
  batch.token_ids = token_ids_;
  batch.positions = positions_;
  batch.query_start_loc = query_start_loc_;
  batch.seq_lens = seq_lens_;
  batch.groups = groups;
  batch.logits_indices = logits_indices_;
  batch.hidden_indices = hidden_indices_;
  batch.causal = !model_.limits().is_encoder;
  hidden_.resize(hidden_indices_.size() * static_cast<std::size_t>(model_.limits().hidden_size));
  model_.forward(batch, kv_, {.logits = logits_, .hidden = hidden_});
  return std::span<const float>(logits_).first(
      logits_indices_.size() * static_cast<std::size_t>(model_.limits().vocab_size));
}

void SequenceSet::truncate(int seq_idx, int num_tokens) {
  std::int32_t& length = lengths_[static_cast<std::size_t>(seq_idx)];
  DUNLIN_CHECK(num_tokens >= 0 && num_tokens <= length, "can only shorten a sequence");
  length = num_tokens;
}

void SequenceSet::free_behind_windows() {
  for (std::size_t g = 0; g < tables_.size(); ++g) {
    const int window = kv_.layout().groups[g].window;
    if (window == 0) continue;
    for (std::size_t seq = 0; seq < lengths_.size(); ++seq) {
      // The next query stands at position lengths_[seq] and sees the window - 1 before it.
      const int num_free = std::max(0, lengths_[seq] - (window - 1)) / kBlockSize;
      for (int i = 0; i < num_free; ++i) {
        std::int32_t& block =
            tables_[g][seq * static_cast<std::size_t>(max_blocks_) + static_cast<std::size_t>(i)];
        if (block < 0) continue;
        std::memset(kv_.block(block), 0xff, static_cast<std::size_t>(kv_.block_bytes()));
        block = -1;
      }
    }
  }
}

}  // namespace dunlin
