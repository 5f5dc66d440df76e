#include "kv/disk_tier.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/check.h"
#include "base/thread_name.h"

namespace dunlin {
namespace {

// Room for fewer blocks than this is a mistake in the unit.
constexpr std::int64_t kMinBlocks = 64;
constexpr std::uint64_t kMaxWarnings = 8;
// Below the compute threads, which must not wait for a file.
constexpr int kNice = 10;

}  // namespace

// A key is a hash already.
std::size_t DiskTier::KeyHash::operator()(const PrefixKey& key) const {
  std::size_t hash;
  std::memcpy(&hash, key.data(), sizeof hash);
  return hash;
}

Result<std::unique_ptr<DiskTier>> DiskTier::open(DiskTierConfig config) {
  const std::int64_t file_bytes = config.payload_bytes + std::int64_t{kBlockFileHeaderSize};
  if (config.max_bytes < kMinBlocks * file_bytes) {
    return invalid(
        fmt::format("the prefix cache on disk may take {} bytes, but {} blocks of this "
                    "model take {}; give it more",
                    config.max_bytes, kMinBlocks, kMinBlocks * file_bytes));
  }
  DUNLIN_ASSIGN(folder, DiskFolder::open(config.dir, config.identity));
  if (!folder.is_writer())
    config.warn(fmt::format("{}: another process writes there; this one only reads", config.dir));
  return std::unique_ptr<DiskTier>(new DiskTier(std::move(config), std::move(folder)));
}

DiskTier::DiskTier(DiskTierConfig config, DiskFolder folder)
    : config_(std::move(config)),
      folder_(std::move(folder)),
      can_write_(folder_.is_writer()),
      read_buffer_(file_size()),
      thread_([this] { run(); }) {}

DiskTier::~DiskTier() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::size_t DiskTier::file_size() const {
  return kBlockFileHeaderSize + static_cast<std::size_t>(config_.payload_bytes);
}

std::size_t DiskTier::max_jobs() const {
  return std::max<std::size_t>(1, static_cast<std::size_t>(config_.max_queued_bytes) / file_size());
}

bool DiskTier::contains(const PrefixKey& key) const {
  {
    const std::lock_guard lock(mutex_);
    if (keys_.contains(key)) return true;
    if (is_clearing_ || (is_listed_ && folder_.is_writer())) return false;
  }
  // What the process that writes has added meanwhile, or what is not listed yet.
  return folder_.contains(key);
}

void DiskTier::save(const PrefixKey& key, const TokenId* tokens,
                    std::span<const std::span<const std::byte>> blocks) {
  Job job;
  {
    const std::lock_guard lock(mutex_);
    if (keys_.contains(key) || queued_.contains(key)) return;
    if (!can_write_ || queued_.size() >= max_jobs()) {
      ++stats_.num_dropped;
      return;
    }
    queued_.insert(key);
    if (!spare_.empty()) {
      job.file = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  job.file.resize(file_size());
  job.id = {config_.identity, key, {}};
  std::copy(tokens, tokens + kBlockSize, job.id.tokens.begin());
  std::size_t at = kBlockFileHeaderSize;
  for (const auto block : blocks) {
    DUNLIN_CHECK(at + block.size() <= job.file.size(), "a block of every group, no more");
    std::memcpy(job.file.data() + at, block.data(), block.size());
    at += block.size();
  }
  DUNLIN_CHECK(at == job.file.size(), "a block of every group");
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

bool DiskTier::load(const PrefixKey& key, const TokenId* tokens,
                    std::span<const std::span<std::byte>> blocks) {
  const Outcome read = folder_.read(key, read_buffer_);
  if (!read && read.error().code() != StatusCode::kDataLoss) {
    const std::lock_guard lock(mutex_);  // removed by another process
    keys_.erase(key);
    return false;
  }
  BlockFileId expected{config_.identity, key, {}};
  std::copy(tokens, tokens + kBlockSize, expected.tokens.begin());
  const auto payload = read ? open_block_file(read_buffer_, expected,
                                              static_cast<std::size_t>(config_.payload_bytes))
                            : tl::unexpected(read.error());
  if (!payload) {
    drop_bad_file(key, payload.error().message());
    return false;
  }
  std::size_t at = 0;
  for (const auto block : blocks) {
    std::memcpy(block.data(), payload->data() + at, block.size());
    at += block.size();
  }
  DUNLIN_CHECK(at == payload->size(), "a block of every group");
  const std::lock_guard lock(mutex_);
  ++stats_.num_read;
  return true;
}

void DiskTier::drop_bad_file(const PrefixKey& key, std::string_view why) {
  folder_.remove(key);
  std::uint64_t num_bad = 0;
  {
    const std::lock_guard lock(mutex_);
    keys_.erase(key);
    num_bad = ++stats_.num_bad;
  }
  if (num_bad > kMaxWarnings) return;
  config_.warn(fmt::format("{}: the cached block {}... is dropped: {}{}", config_.dir,
                           to_hex(key).substr(0, 8), why,
                           num_bad == kMaxWarnings ? "; further ones are dropped silently" : ""));
}

void DiskTier::clear() {
  const std::lock_guard lock(mutex_);
  for (const Job& job : jobs_) queued_.erase(job.id.key);
  jobs_.clear();
  keys_.clear();
  is_clearing_ = true;
  changed_.notify_all();
}

bool DiskTier::flush(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return is_idle(); });
}

DiskTierStats DiskTier::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void DiskTier::run() {
  name_this_thread("dunlin-disk");
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
  take_listing();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.notify_all();
    changed_.wait(lock, [this] { return !jobs_.empty() || is_clearing_ || is_stopping_; });
    if (!is_clearing_ && jobs_.empty()) return;
    is_working_ = true;
    if (is_clearing_) {
      lock.unlock();
      remove_own_files();
      lock.lock();
      is_clearing_ = false;
    } else {
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      write(job);
      lock.lock();
      queued_.erase(job.id.key);
      spare_.push_back(std::move(job.file));
    }
    is_working_ = false;
  }
}

// The thread's view of the disk becomes the disk's.
void DiskTier::take_listing() {
  KeySet keys;
  std::int64_t num_bytes = 0;
  for (const StoredBlock& block : folder_.list()) {
    if (block.is_own) keys.insert(block.key);
    num_bytes += block.num_bytes;
  }
  const std::lock_guard lock(mutex_);
  stats_.num_bytes = num_bytes;
  is_listed_ = true;
  if (!is_clearing_) keys_ = std::move(keys);
  changed_.notify_all();
}

void DiskTier::write(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    if (keys_.contains(job.id.key)) return;
    if (!can_write_) {
      ++stats_.num_dropped;
      return;
    }
  }
  seal_block_file(job.file, job.id);
  const Outcome written = folder_.write(job.id.key, job.file);
  bool is_full = false;
  {
    const std::lock_guard lock(mutex_);
    if (written) {
      ++stats_.num_written;
      stats_.num_bytes += static_cast<std::int64_t>(job.file.size());
      is_full = stats_.num_bytes > config_.max_bytes;
      if (!is_clearing_) keys_.insert(job.id.key);
    } else {
      can_write_ = false;
      ++stats_.num_dropped;
    }
  }
  if (!written) {
    config_.warn(fmt::format("the prefix cache on disk is no longer written: {}",
                             written.error().message()));
  }
  if (is_full) evict();
}

// Down to nine tenths, so that the listing pays.
void DiskTier::evict() {
  std::vector<StoredBlock> blocks = folder_.list();
  std::sort(blocks.begin(), blocks.end(),
            [](const StoredBlock& a, const StoredBlock& b) { return a.used_ns < b.used_ns; });
  std::int64_t num_bytes = 0;
  for (const StoredBlock& block : blocks) num_bytes += block.num_bytes;
  std::size_t num_gone = 0;
  const std::int64_t target = config_.max_bytes / 10 * 9;
  for (; num_gone < blocks.size() && num_bytes > target; ++num_gone) {
    ::unlink(blocks[num_gone].path.c_str());
    num_bytes -= blocks[num_gone].num_bytes;
  }
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < num_gone; ++i) {
    if (blocks[i].is_own) keys_.erase(blocks[i].key);
  }
  stats_.num_evicted += num_gone;
  stats_.num_bytes = num_bytes;
}

void DiskTier::remove_own_files() {
  std::int64_t num_bytes = 0;
  for (const StoredBlock& block : folder_.list()) {
    if (block.is_own) {
      ::unlink(block.path.c_str());
    } else {
      num_bytes += block.num_bytes;
    }
  }
  const std::lock_guard lock(mutex_);
  stats_.num_bytes = num_bytes;
}

}  // namespace dunlin
