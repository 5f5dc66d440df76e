// POST /reset_prefix_cache: the engine's answer comes from its thread, behind the step that runs.
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/api_call.h"

namespace dunlin {
namespace {

class ResetCall final : public ApiCall {
 public:
  Outcome start(Engine& engine) {
    return engine.reset_prefix_cache(
        [answer = answer_](const PrefixCacheReset& reset) { answer->put(reset); });
  }

  bool is_streaming() const override { return false; }
  int num_choices() const override { return 0; }
  int max_tokens() const override { return 0; }
  void cancel() override {}
  void on_ready(std::function<void()> notify) override { answer_->set_notify(std::move(notify)); }

  CallProgress advance() override {
    CallProgress progress;
    const std::lock_guard lock(answer_->mutex);
    if (!answer_->reset) return progress;
    nlohmann::ordered_json json;
    json["num_dropped_blocks"] = answer_->reset->num_dropped_blocks;
    json["num_forgotten_blocks"] = answer_->reset->num_forgotten_blocks;
    progress.bytes = json.dump();
    progress.done = true;
    return progress;
  }

 private:
  // Outlives the call where the client doesn't wait.
  struct Answer {
    std::mutex mutex;
    std::optional<PrefixCacheReset> reset;
    std::function<void()> notify;

    void put(const PrefixCacheReset& given) {
      const std::lock_guard lock(mutex);
      reset = given;
      if (notify) notify();
    }
    void set_notify(std::function<void()> given) {
      const std::lock_guard lock(mutex);
      notify = std::move(given);
      if (reset) notify();
    }
  };

  std::shared_ptr<Answer> answer_ = std::make_shared<Answer>();
};

}  // namespace

ApiResult<std::unique_ptr<ApiCall>> start_reset_prefix_cache(Session& session) {
  auto call = std::make_unique<ResetCall>();
  if (auto started = call->start(session.engine()); !started)
    return api_fail(api_error_from(started.error()));
  return call;
}

}  // namespace dunlin
