// The flags that every command which runs a model shares: run, serve and bench.
#pragma once

#include <memory>
#include <string>

#include "cli/model_store.h"
#include "dunlin/status.h"
#include "frontend/session.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace dunlin::cli {

struct SessionFlags {
  std::string model;
  std::string memory;     // "512M", "2G", "" for what is free, less a margin
  std::string kv_memory;  // the same, "" for what fits
  std::string kv_policy = "full";
  std::string chat_template;  // a file's path, or the template itself
  SessionConfig session;
  FetchOptions fetch;
};

// Adds MODEL and --quantize --context --threads --max-seqs --memory --kv-memory --isa
// --cache-type-k --cache-type-v --kv-policy --chat-template --offline, each with its DUNLIN_*
// variable.
void add_session_flags(CLI::App& command, SessionFlags& flags);

// Adds --kv-policy, checked as parse_kv_policy() reads it.
CLI::Option& add_kv_policy_option(CLI::App& command, std::string& policy);

// Fetches the model where needed and opens it, with a progress line on stderr unless quiet.
Result<std::unique_ptr<Session>> open_session(SessionFlags flags);

// "1536", "512M", "1.5G" (powers of 1024; a trailing B or iB is fine) in bytes.
Result<std::int64_t> parse_bytes(const std::string& text);

}  // namespace dunlin::cli
