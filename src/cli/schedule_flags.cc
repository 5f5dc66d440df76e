#include "cli/schedule_flags.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <map>
#include <string_view>

namespace dunlin::cli {
namespace {

struct Preset {
  std::string_view name;
  int max_seqs;
  int max_batch_tokens;
  int max_queue;
  double target_itl_ms;
};

// chat: few streams, each fast, whatever prompts come. bulk: as much at once as there is.
constexpr Preset kPresets[] = {{"chat", 8, 256, 64, 100}, {"bulk", 256, 2048, 4096, 0}};

constexpr double kMaxTimeout_s = 7 * 24 * 3600;

const std::map<std::string, SchedulePolicy> kPolicies = {{"fcfs", SchedulePolicy::kFcfs},
                                                         {"priority", SchedulePolicy::kPriority},
                                                         {"prefix", SchedulePolicy::kPrefix}};

void add_time_flags(CLI::App& command, ScheduleFlags& flags, EngineConfig& engine) {
  command
      .add_option("--queue-timeout", flags.queue_timeout_s,
                  "Seconds that a request may wait for its turn; then the answer is 503 (default: "
                  "no limit)")
      ->check(CLI::Range(0.0, kMaxTimeout_s))
      ->envname("DUNLIN_QUEUE_TIMEOUT");
  command
      .add_option("--request-timeout", flags.request_timeout_s,
                  "Seconds that a request may take; then it ends with what it has (default: no "
                  "limit)")
      ->check(CLI::Range(0.0, kMaxTimeout_s))
      ->envname("DUNLIN_REQUEST_TIMEOUT");
  command
      .add_option("--target-itl-ms", engine.target_itl_ms,
                  "Time between two tokens of a stream that prompts must leave; steps take fewer "
                  "prompt tokens to keep it (default: none)")
      ->check(CLI::Range(0.0, 3.6e6))
      ->envname("DUNLIN_TARGET_ITL_MS");
  command
      .add_option("--target-ttft-ms", engine.target_ttft_ms,
                  "Time to the first token; with --target-itl-ms it may stretch that one twofold "
                  "(default: none)")
      ->check(CLI::Range(0.0, 3.6e6))
      ->envname("DUNLIN_TARGET_TTFT_MS");
}

}  // namespace

void add_schedule_flags(CLI::App& command, ScheduleFlags& flags, EngineConfig& engine) {
  command
      .add_option("--preset", flags.preset,
                  "Defaults for a purpose: chat (few streams, low latency) or bulk (the largest "
                  "batch); other flags win")
      ->check(CLI::IsMember({"chat", "bulk"}))
      ->envname("DUNLIN_PRESET");
  command
      .add_option("--max-queue", engine.max_queue,
                  "Requests that may wait; beyond it the answer is 429")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str()
      ->envname("DUNLIN_MAX_QUEUE");
  command
      .add_option("--max-batch-tokens", engine.max_batch_tokens,
                  "Tokens computed in one step, prompts and answers together")
      ->check(CLI::Range(16, 1 << 16))
      ->capture_default_str()
      ->envname("DUNLIN_MAX_BATCH_TOKENS");
  command
      .add_option("--schedule", engine.schedule,
                  "Which waiting request runs next: fcfs (the first to arrive), priority (the "
                  "lowest), prefix (most of its prompt in the cache)")
      ->transform(CLI::CheckedTransformer(kPolicies))
      ->default_str("priority")
      ->envname("DUNLIN_SCHEDULE");
  command
      .add_option("--max-overtakes", engine.max_overtakes,
                  "Times that later requests of the same key may run before a waiting one")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str()
      ->envname("DUNLIN_MAX_OVERTAKES");
  add_time_flags(command, flags, engine);
}

void apply_schedule_flags(const CLI::App& command, const ScheduleFlags& flags,
                          EngineConfig& engine) {
  const auto ms = [](double s) { return std::chrono::milliseconds(std::llround(s * 1e3)); };
  engine.queue_timeout = ms(flags.queue_timeout_s);
  engine.request_timeout = ms(flags.request_timeout_s);
  const auto set = [&command](const char* flag, auto& to, auto value) {
    if (command.get_option(flag)->count() == 0) to = value;
  };
  for (const Preset& preset : kPresets) {
    if (preset.name != flags.preset) continue;
    set("--max-seqs", engine.max_seqs, preset.max_seqs);
    set("--max-batch-tokens", engine.max_batch_tokens, preset.max_batch_tokens);
    set("--max-queue", engine.max_queue, preset.max_queue);
    set("--target-itl-ms", engine.target_itl_ms, preset.target_itl_ms);
  }
}

}  // namespace dunlin::cli
