#include "engine/disk_prefixes.h"

#include <algorithm>

namespace dunlin {
namespace {

// Of a new measurement. What is late says little on a busy machine, so a mean falls sooner than it
// rises.
constexpr double kRiseWeight = 0.1, kFallWeight = 0.5;
constexpr double kForgetting = 0.98;   // a slow disk is tried again after a while
constexpr int kMinPrefillTokens = 32;  // below it a step says little about prefill

void observe(double& mean, double value) {
  const double weight = value < mean ? kFallWeight : kRiseWeight;
  mean = mean == 0 ? value : mean + weight * (value - mean);
}

}  // namespace

DiskPrefixes::DiskPrefixes(DiskTier& tier, KvCacheManager& kv, KvStorage& storage,
                           std::chrono::nanoseconds max_read_time, double slow_read_s)
    : tier_(tier),
      kv_(kv),
      storage_(storage),
      max_read_time_(max_read_time),
      slow_read_s_(slow_read_s),
      targets_(static_cast<std::size_t>(kv.num_groups())),
      sources_(static_cast<std::size_t>(kv.num_groups())) {}

const PrefixKey& DiskPrefixes::key_of(Sequence& seq, int block_idx) const {
  std::vector<PrefixKey>& keys = seq.block_keys;
  while (static_cast<int>(keys.size()) <= block_idx) {
    const PrefixKey before =
        keys.empty() ? first_prefix_key(tier_.identity(), seq.cache_salt) : keys.back();
    keys.push_back(next_prefix_key(before, seq.tokens.data() + keys.size() * kBlockSize));
  }
  return keys[static_cast<std::size_t>(block_idx)];
}

void DiskPrefixes::save(Sequence& seq, int end) {
  if (!kv_.enters_cache(seq.kv)) return;
  const auto bytes = static_cast<std::size_t>(storage_.block_bytes());
  const int end_block = std::min(end, seq.kv.num_exact_tokens()) / kBlockSize;
  for (int i = seq.kv.num_computed_tokens() / kBlockSize; i < end_block; ++i) {
    bool is_whole = true;
    for (int g = 0; g < kv_.num_groups(); ++g) {
      const std::int32_t block = seq.kv.table(g)[i];
      is_whole = is_whole && block != kNoBlock;
      if (is_whole) sources_[static_cast<std::size_t>(g)] = {storage_.block(block), bytes};
    }
    if (is_whole) tier_.save(key_of(seq, i), seq.tokens.data() + i * kBlockSize, sources_);
  }
}

bool DiskPrefixes::extend(Sequence& seq, bool others_run) {
  if (!kv_.enters_cache(seq.kv)) return true;
  const int num_tokens = static_cast<int>(std::ssize(seq.cacheable_tokens())) - 1;
  const int max_hit = std::min(num_tokens, seq.kv.num_exact_tokens()) / kBlockSize;
  for (int i = seq.kv.num_computed_tokens() / kBlockSize; i < max_hit; ++i) {
    if (!tier_.contains(key_of(seq, i)) || !is_worth_reading()) return true;
    const auto now = EngineClock::now();
    if (read_until_ == EngineClock::time_point{}) read_until_ = now + max_read_time_;
    if (others_run && now > read_until_) return false;
    if (!read_block(seq, i)) return true;
    observe(read_s_, std::chrono::duration<double>(EngineClock::now() - now).count());
  }
  return true;
}

bool DiskPrefixes::read_block(Sequence& seq, int block_idx) {
  const int end = (block_idx + 1) * kBlockSize;
  if (!kv_.allocate(seq.kv, end)) return false;
  for (int g = 0; g < kv_.num_groups(); ++g) {
    targets_[static_cast<std::size_t>(g)] = {storage_.block(seq.kv.table(g)[block_idx]),
                                             static_cast<std::size_t>(storage_.block_bytes())};
  }
  const TokenId* tokens = seq.tokens.data() + block_idx * kBlockSize;
  if (!tier_.load(key_of(seq, block_idx), tokens, targets_)) return false;
  kv_.commit(seq.kv, seq.tokens, end);
  return true;
}

void DiskPrefixes::note_prefill(int num_tokens, double seconds) {
  if (num_tokens >= kMinPrefillTokens) observe(compute_s_, seconds / num_tokens * kBlockSize);
}

bool DiskPrefixes::is_worth_reading() {
  if (read_s_ <= slow_read_s_ || compute_s_ == 0 || read_s_ < compute_s_) return true;
  read_s_ *= kForgetting;
  return false;
}

}  // namespace dunlin
