// The flags of `serve` that decide who is computed when: limits, latency targets, presets.
#pragma once

#include <string>

#include "engine/engine.h"

namespace CLI {
class App;
}

namespace dunlin::cli {

struct ScheduleFlags {
  std::string preset;  // "", "chat" or "bulk"
  double queue_timeout_s = 0;
  double request_timeout_s = 0;
};

// Adds the flags, each with its DUNLIN_* variable. --max-seqs is there already.
void add_schedule_flags(CLI::App& command, ScheduleFlags& flags, EngineConfig& engine);

// Once `command` is parsed: the timeouts, and what the preset says where neither a flag nor a
// variable did.
void apply_schedule_flags(const CLI::App& command, const ScheduleFlags& flags,
                          EngineConfig& engine);

}  // namespace dunlin::cli
