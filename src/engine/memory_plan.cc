#include "engine/memory_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/row_maxima.h"
#include "engine/engine_core.h"
#include "engine/row_sampler.h"
#include "kv/kv_cache_manager.h"
#include "model/step.h"

namespace dunlin {
namespace {

// Measured: what a server has at rest above its weights, less what is told below.
constexpr std::int64_t kProgramBytes = std::int64_t{14} << 20;
constexpr std::int64_t kBytesPerVocabEntry = 72;  // texts, merges and their tables
// Of a block in the pool and the prefix index; of a token of a sequence, its id.
constexpr std::int64_t kBytesPerBlock = 160, kBytesPerToken = 4;

}  // namespace

MemoryPlanner::MemoryPlanner(const ModelConfig& config, const WeightSizes& weights,
                             const KvLayout& layout, int num_threads, const EngineConfig& limits)
    : layout_(layout),
      kv_policy_(limits.kv_policy),
      max_context_(limits.max_context > 0 ? limits.max_context : config.context_length),
      max_seqs_(limits.max_seqs),
      max_logits_rows_(max_logits_rows(limits)),
      max_batch_tokens_(std::max(limits.max_batch_tokens, limits.max_seqs)) {
  fixed_.weights = weights.packed_bytes;
  fixed_.scratch = scratch_bytes(config, weights.keeps_float_inputs, num_threads);
  fixed_.overhead = kProgramBytes + config.vocab_size * kBytesPerVocabEntry;
}

std::int64_t MemoryPlanner::scratch_bytes(const ModelConfig& config, bool keep_float,
                                          int num_threads) const {
  const auto vocab = static_cast<std::size_t>(config.vocab_size);
  const std::int64_t rows = max_logits_rows_;
  const auto row_bytes = static_cast<std::int64_t>((vocab + maxima_size(vocab)) * sizeof(float));
  const std::int64_t tables = static_cast<std::int64_t>(layout_.groups.size()) *
                              (max_seqs_ * ((max_context_ + kBlockSize - 1) / kBlockSize) *
                                   std::int64_t{sizeof(std::int32_t)} +
                               max_batch_tokens_ * std::int64_t{sizeof(std::int64_t)});
  return StepScratch::reserved_bytes(config, layout_, num_threads, max_batch_tokens_, keep_float) +
         rows * row_bytes + RowSampler::reserved_bytes(num_threads, max_seqs_, config.vocab_size) +
         tables;
}

MemoryPlan MemoryPlanner::with_blocks(std::int64_t num_blocks) const {
  MemoryPlan plan = fixed_;
  plan.num_blocks = num_blocks;
  plan.kv = num_blocks * layout_.block_bytes();
  const auto groups = static_cast<std::int64_t>(layout_.groups.size());
  plan.overhead += num_blocks * (kBytesPerBlock + kBlockSize * kBytesPerToken / groups);
  if (kv_policy_.type == KvPolicyType::kQuest)
    plan.overhead += num_blocks * layout_.block_bounds_bytes();
  if (kv_policy_.compacts()) plan.overhead += num_blocks * layout_.block_votes_bytes();
  return plan;
}

std::int64_t MemoryPlanner::blocks_for(int context, const KvPolicy& policy) const {
  return KvCacheManager::max_blocks_per_sequence(layout_, context, max_batch_tokens_, policy);
}

MemoryPlan MemoryPlanner::with_sequences(std::int64_t num_sequences, int context) const {
  return with_blocks(num_sequences * blocks_for(context, kv_policy_));
}

std::int64_t MemoryPlanner::blocks_within(std::int64_t bytes) const {
  const std::int64_t per_block = with_blocks(1).total() - fixed_.total();
  return std::min(std::max<std::int64_t>(0, bytes - fixed_.total()) / per_block, kMaxBlocks);
}

MemoryPlan MemoryPlanner::within(std::int64_t bytes) const {
  return with_blocks(std::min(blocks_within(bytes), max_seqs_ * blocks_for(max_context_)));
}

std::int64_t MemoryPlanner::sequences(std::int64_t num_blocks, int context) const {
  return num_blocks / blocks_for(context, kv_policy_);
}

int MemoryPlanner::longest_context(std::int64_t num_blocks) const {
  return KvCacheManager::longest_sequence(layout_, num_blocks, max_context_, max_batch_tokens_);
}

MemoryTable memory_table(const MemoryPlanner& planner, const MemoryPlan& plan,
                         std::int64_t budget) {
  MemoryTable table{plan, budget, planner.layout().bytes_per_token(), planner.kv_policy(), {}};
  const int longest = planner.longest_context(plan.num_blocks);
  for (int context = 1024; context < longest; context *= 4)
    table.fits.push_back({context, planner.sequences(plan.num_blocks, context)});
  if (longest > 0) table.fits.push_back({longest, planner.sequences(plan.num_blocks, longest)});
  return table;
}

Outcome check_plan(const MemoryPlanner& planner, const MemoryPlan& plan, std::int64_t budget,
                   int wanted_context) {
  const auto mib = [](std::int64_t bytes) { return static_cast<double>(bytes) / 0x1p20; };
  const int fits = planner.longest_context(plan.num_blocks);
  const int needed =
      wanted_context > 0 ? wanted_context : std::min(planner.max_context(), 2 * kBlockSize);
  if (fits >= needed) return {};
  const MemoryPlan wanted = planner.with_sequences(1, needed);
  return fail(
      StatusCode::kResourceExhausted,
      fmt::format(
          "weights take {:.0f} MiB, scratch {:.0f}, overhead {:.0f} and the KV cache of one "
          "context of {} tokens {:.1f}, together {:.0f} MiB, but {:.0f} MiB may be used; "
          "give more --memory, a shorter --context, or a model in fewer bits",
          mib(wanted.weights), mib(wanted.scratch), mib(wanted.overhead), needed, mib(wanted.kv),
          mib(wanted.total()), mib(budget)));
}

}  // namespace dunlin
