// The engine's thread, and the checks and defaults at its border.
#include "engine/engine.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/thread_name.h"
#include "engine/engine_core.h"
#include "engine/request_queue.h"

namespace dunlin {
namespace {

constexpr int kMaxSeqsLimit = 4096;
constexpr int kMaxBatchTokensLimit = 1 << 16;
constexpr double kMaxTargetMs = 3.6e6;
constexpr double kMinShare = 1e-3;
constexpr double kMaxShare = 1e3;

// Of two limits, of which 0 is none.
std::chrono::milliseconds shorter(std::chrono::milliseconds a, std::chrono::milliseconds b) {
  if (a.count() == 0 || b.count() == 0) return std::max(a, b);
  return std::min(a, b);
}

class Stream final : public TokenStream {
 public:
  Stream(RequestId id, std::shared_ptr<OutputQueue> output, std::shared_ptr<RequestQueue> queue)
      : id_(id), output_(std::move(output)), queue_(std::move(queue)) {}
  ~Stream() override {
    output_->set_notify(nullptr);
    if (!is_finished_) queue_->abort(id_);
  }

  RequestId id() const override { return id_; }
  std::optional<TokenOutput> poll() override { return noted(output_->pop()); }
  std::optional<TokenOutput> wait(std::chrono::milliseconds timeout) override {
    return noted(is_finished_ ? std::nullopt : output_->pop_within(timeout));
  }
  void on_ready(std::function<void()> notify) override { output_->set_notify(std::move(notify)); }

 private:
  std::optional<TokenOutput> noted(std::optional<TokenOutput> output) {
    if (output && output->finish != FinishReason::kNone) is_finished_ = true;
    return output;
  }

  const RequestId id_;
  std::shared_ptr<OutputQueue> output_;
  std::shared_ptr<RequestQueue> queue_;
  bool is_finished_ = false;
};

class ThreadedEngine final : public Engine {
 public:
  ThreadedEngine(std::unique_ptr<Model> model, const EngineConfig& config, std::int32_t num_blocks,
                 std::unique_ptr<DiskTier> disk)
      : config_(config),
        limits_(model->limits()),
        layout_(model->kv_layout()),
        num_blocks_(num_blocks),
        queue_(std::make_shared<RequestQueue>(config.max_queue)),
        disk_(std::move(disk)),
        core_(std::move(model), config, num_blocks, disk_.get()),
        stats_(core_.stats()),
        thread_([this] { run(); }) {}

  ~ThreadedEngine() override {
    queue_->stop();
    thread_.join();
  }

  Result<std::vector<std::unique_ptr<TokenStream>>> submit_choices(EngineRequest request,
                                                                   int n) override;
  void abort(RequestId id) override { queue_->abort(id); }
  Outcome reset_prefix_cache(std::function<void(const PrefixCacheReset&)> done) override {
    return queue_->submit_task(
        [this, done = std::move(done)] { done(core_.reset_prefix_cache()); });
  }
  EngineStats stats() const override {
    EngineStats stats = published_stats();
    if (disk_ != nullptr) stats.prefix_disk = disk_->stats();
    return stats;
  }
  const EngineConfig& config() const override { return config_; }
  const ModelLimits& limits() const override { return limits_; }

  void shutdown(std::chrono::milliseconds grace) override {
    queue_->close();
    if (queue_->wait_until_done(grace)) return;
    queue_->cancel_all();
    queue_->wait_until_done();
  }

 private:
  Outcome check(const EngineRequest& request, int n) const;
  Outcome check_lengths(const EngineRequest& request) const;
  EngineStats published_stats() const {
    const std::lock_guard lock(stats_mutex_);
    return stats_;
  }
  void run();
  void publish();

  const EngineConfig config_;
  const ModelLimits limits_;
  const KvLayout layout_;
  const std::int32_t num_blocks_;
  std::shared_ptr<RequestQueue> queue_;
  const std::unique_ptr<DiskTier> disk_;  // null: none
  EngineCore core_;                       // the engine thread's
  mutable std::mutex stats_mutex_;
  EngineStats stats_;
  std::thread thread_;  // last: everything else is there when it starts
};

void ThreadedEngine::run() {
  name_this_thread("dunlin-engine");
  RequestQueue::News news;
  while (true) {
    queue_->take(news, /*wait=*/!core_.has_work());
    for (auto& seq : news.arrivals) core_.add(std::move(seq));
    for (const RequestId id : news.aborts) core_.abort(id);
    for (const auto& task : news.tasks) task();
    if (news.cancel_all || news.stop) core_.abort_all();
    core_.expire(EngineClock::now());
    if (core_.has_work()) core_.step();
    publish();
    if (news.stop) return;
  }
}

void ThreadedEngine::publish() {
  {
    const std::lock_guard lock(stats_mutex_);
    stats_ = core_.stats();
  }
  queue_->note_left_queue(core_.take_left_queue());
  queue_->note_finished(core_.take_finished());
}

Outcome ThreadedEngine::check(const EngineRequest& request, int n) const {
  if (request.prompt.empty()) return invalid("the prompt is empty; it needs at least one token");
  for (std::size_t i = 0; i < request.prompt.size(); ++i) {
    const TokenId token = request.prompt[i];
    if (token < 0 || token >= limits_.vocab_size) {
      return invalid(fmt::format("prompt token {} is {}, but the vocabulary has {} tokens", i,
                                 token, limits_.vocab_size));
    }
  }
  if (n < 1 || n > config_.max_queue) {
    return invalid(
        fmt::format("{} choices are asked for, but the queue takes {} at most; ask for "
                    "fewer or raise --max-queue",
                    n, config_.max_queue));
  }
  if (n > 1 && request.constraint != nullptr) {
    return invalid("a constraint follows one choice; submit them one by one");
  }
  if (request.tenant < 0 || request.tenant >= config_.num_tenants()) {
    return invalid(
        fmt::format("tenant {} is unknown; there are {}", request.tenant, config_.num_tenants()));
  }
  if (request.pooling != Pooling::kNone) return check_lengths(request);
  if (limits_.is_encoder)
    return invalid("the model is an encoder: it gives embeddings of texts and continues none");
  DUNLIN_TRY(validate(request.sampling, limits_.vocab_size));
  if (auto valid = validate(*request.kv_policy); !valid)
    return tl::unexpected(valid.error().with_prefix("kv_policy"));
  if (request.sampling.max_tokens == 0 && !request.echo_logprobs) {
    return invalid("max_tokens must be at least 1, got 0");
  }
  if (request.echo_start < 0 || request.echo_start >= std::ssize(request.prompt)) {
    return invalid(fmt::format("echo_start must be in [0, {}), got {}", request.prompt.size(),
                               request.echo_start));
  }
  if (request.num_policy_prompt_tokens < 0 ||
      request.num_policy_prompt_tokens > std::ssize(request.prompt)) {
    return invalid(fmt::format("num_policy_prompt_tokens must be in [0, {}], got {}",
                               request.prompt.size(), request.num_policy_prompt_tokens));
  }
  return check_lengths(request);
}

Outcome ThreadedEngine::check_lengths(const EngineRequest& request) const {
  const auto num_prompt = static_cast<std::int64_t>(request.prompt.size());
  if (request.pooling != Pooling::kNone) {
    if (num_prompt <= config_.max_context) return {};
    return invalid(fmt::format("the text has {} tokens, but the context holds {}; shorten the text",
                               num_prompt, config_.max_context));
  }
  const std::int64_t num_total = num_prompt + request.sampling.max_tokens;
  const KvPolicy& policy = *request.kv_policy;
  const int longest = max_tokens_of(policy, config_, limits_);
  if (num_total > longest) {
    return invalid(fmt::format(
        "the prompt has {} tokens and max_tokens asks for {}, together {}, but the context holds "
        "{}; shorten the prompt or lower max_tokens",
        num_prompt, request.sampling.max_tokens, num_total, longest));
  }
  const int needed = KvCacheManager::max_blocks_per_sequence(layout_, static_cast<int>(num_total),
                                                             config_.max_batch_tokens, policy);
  if (needed > num_blocks_) {
    return invalid(
        fmt::format("kv_policy {} takes {} blocks of KV memory for {} tokens, but there are {}; "
                    "ask for fewer tokens",
                    to_string(policy), needed, num_total, num_blocks_));
  }
  return {};
}

Result<std::vector<std::unique_ptr<TokenStream>>> ThreadedEngine::submit_choices(
    EngineRequest request, int n) {
  if (request.pooling != Pooling::kNone) request.kv_policy = KvPolicy{};
  if (!request.kv_policy) request.kv_policy = config_.kv_policy;
  DUNLIN_TRY(check(request, n));
  request.queue_timeout = shorter(request.queue_timeout, config_.queue_timeout);
  request.deadline = shorter(request.deadline, config_.request_timeout);
  std::vector<std::unique_ptr<Sequence>> seqs;
  std::vector<std::shared_ptr<OutputQueue>> outputs;
  for (int i = 0; i < n; ++i) {
    EngineRequest choice = i + 1 < n ? request : std::move(request);
    choice.sampling.choice_idx += static_cast<std::uint32_t>(i);
    seqs.push_back(make_sequence(std::move(choice), limits_.vocab_size));
    outputs.push_back(seqs.back()->output);
  }
  DUNLIN_ASSIGN(first_id, queue_->submit(std::move(seqs)));
  std::vector<std::unique_ptr<TokenStream>> streams;
  for (std::shared_ptr<OutputQueue>& output : outputs)
    streams.push_back(
        std::make_unique<Stream>(first_id + streams.size(), std::move(output), queue_));
  return streams;
}

// What a config leaves open, and what does not go together.
struct Plan {
  EngineConfig config;
  std::int32_t num_blocks = 0;
};

Outcome check_config(const EngineConfig& config, const ModelLimits& limits) {
  if (config.max_seqs < 1 || config.max_seqs > kMaxSeqsLimit) {
    return invalid(
        fmt::format("max_seqs must be in [1, {}], got {}", kMaxSeqsLimit, config.max_seqs));
  }
  if (config.max_batch_tokens < 1 || config.max_batch_tokens > kMaxBatchTokensLimit) {
    return invalid(fmt::format("max_batch_tokens must be in [1, {}], got {}", kMaxBatchTokensLimit,
                               config.max_batch_tokens));
  }
  if (config.max_scored_tokens < 1 || config.max_scored_tokens > kMaxBatchTokensLimit) {
    return invalid(fmt::format("max_scored_tokens must be in [1, {}], got {}", kMaxBatchTokensLimit,
                               config.max_scored_tokens));
  }
  if (config.max_queue < 1) {
    return invalid(fmt::format("max_queue must be at least 1, got {}", config.max_queue));
  }
  if (config.max_context < 0 || config.max_context > limits.context_length) {
    return invalid(fmt::format("a context of {} tokens is asked for, but the model has {}",
                               config.max_context, limits.context_length));
  }
  if (config.queue_timeout.count() < 0 || config.request_timeout.count() < 0) {
    return invalid("a timeout can't be negative");
  }
  if (config.max_overtakes < 0) {
    return invalid(fmt::format("max_overtakes can't be negative, got {}", config.max_overtakes));
  }
  for (const double share : config.tenant_shares) {
    if (!(share >= kMinShare && share <= kMaxShare))
      return invalid(
          fmt::format("a share must be in [{}, {}], got {}", kMinShare, kMaxShare, share));
  }
  for (const double target : {config.target_itl_ms, config.target_ttft_ms}) {
    if (!(target >= 0 && target <= kMaxTargetMs))
      return invalid(
          fmt::format("a latency target must be in [0, {}] ms, got {}", kMaxTargetMs, target));
  }
  if (config.kv_bytes < 0) return invalid("the size of the KV memory can't be negative");
  return validate(config.kv_policy);
}

Result<Plan> make_plan(const Model& model, const EngineConfig& wanted) {
  const ModelLimits& limits = model.limits();
  const KvLayout& layout = model.kv_layout();
  DUNLIN_TRY(check_config(wanted, limits));
  Plan plan{wanted, 0};
  EngineConfig& config = plan.config;
  config.max_batch_tokens = std::max(config.max_batch_tokens, config.max_seqs);
  int context = config.max_context > 0 ? config.max_context : limits.context_length;
  // An encoder computes a text in one step.
  if (limits.is_encoder) context = std::min(context, config.max_batch_tokens);
  const std::int64_t needed =
      KvCacheManager::max_blocks_per_sequence(layout, context, config.max_batch_tokens);
  if (config.kv_bytes == 0)
    config.kv_bytes = std::min(config.max_seqs * needed * layout.block_bytes(), kDefaultKvBytes);
  const std::int64_t num_blocks = std::min(config.kv_bytes / layout.block_bytes(), kMaxBlocks);
  const int fits =
      KvCacheManager::longest_sequence(layout, num_blocks, context, config.max_batch_tokens);
  // Below a block of prompt and a block of answer nothing useful runs.
  if (fits < std::min(context, 2 * kBlockSize) || (wanted.max_context > 0 && fits < context)) {
    return fail(StatusCode::kResourceExhausted,
                fmt::format("one context of {} tokens takes {:.1f} MiB of KV memory, but there are "
                            "{:.1f} MiB, enough for {} tokens; ask for a shorter --context or more "
                            "--kv-memory",
                            context, static_cast<double>(needed * layout.block_bytes()) / 0x1p20,
                            static_cast<double>(config.kv_bytes) / 0x1p20, fits));
  }
  config.max_context = fits;
  config.kv_bytes = num_blocks * layout.block_bytes();
  plan.num_blocks = static_cast<std::int32_t>(num_blocks);
  return plan;
}

// Null where none is asked for.
Result<std::unique_ptr<DiskTier>> open_disk_tier(const EngineConfig& config,
                                                 const KvLayout& layout) {
  if (config.prefix_disk.dir.empty() || !config.prefix_cache) return nullptr;
  DiskTierConfig disk;
  disk.dir = config.prefix_disk.dir;
  disk.max_bytes = config.prefix_disk.max_bytes;
  disk.identity = config.prefix_disk.identity;
  disk.payload_bytes = static_cast<std::int64_t>(layout.groups.size()) * layout.block_bytes();
  disk.warn = config.prefix_disk.warn ? config.prefix_disk.warn : [](const std::string&) {};
  auto tier = DiskTier::open(std::move(disk));
  if (!tier) return tl::unexpected(tier.error().with_prefix("--prefix-cache-dir"));
  return tier;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(std::unique_ptr<Model> model,
                                               const EngineConfig& config) {
  DUNLIN_ASSIGN(plan, make_plan(*model, config));
  DUNLIN_ASSIGN(disk, open_disk_tier(plan.config, model->kv_layout()));
  return std::make_unique<ThreadedEngine>(std::move(model), plan.config, plan.num_blocks,
                                          std::move(disk));
}

}  // namespace dunlin
