#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/commands.h"
#include "cli/plan_report.h"
#include "cli/schedule_flags.h"
#include "cli/session_flags.h"
#include "cli/version.h"
#include "net/file_limit.h"
#include "server/server.h"

namespace dunlin::cli {
namespace {

struct ServeFlags {
  SessionFlags session;
  ScheduleFlags schedule;
  ServerConfig server;
  std::string api_key;
  std::string api_keys_path;
  int grace_s = 10;
  std::string prefix_disk_size = "8G";
  std::string log_format = "text";
  std::string log_requests = "generations";
};

// Each key is a tenant of the engine.
Outcome read_keys(ServeFlags& flags) {
  std::vector<ApiKey>& keys = flags.server.api_keys;
  if (!flags.api_keys_path.empty()) {
    if (!flags.api_key.empty())
      return invalid("--api-key and --api-keys can't both be given; add the key to the file");
    auto read = read_api_keys(flags.api_keys_path);
    if (!read) return tl::unexpected(read.error().with_prefix("--api-keys"));
    keys = std::move(*read);
  } else if (!flags.api_key.empty()) {
    keys = {{"api-key", flags.api_key}};
  }
  for (const ApiKey& key : keys) flags.session.session.engine.tenant_shares.push_back(key.share);
  return {};
}

void tell_ready(const Session& session, const std::string& url, LogFormat format) {
  const std::string& name = session.config().model_name;
  const int context = session.context_length();
  const auto now = std::chrono::system_clock::now();
  std::string lines = format_event(
      "listening",
      fmt::format("serving {} at {}, context {} tokens. Chat page: {}/  API: {}/v1  Ctrl-C "
                  "ends it.",
                  name, url, context, url, url),
      {{"model", name}, {"url", url}, {"context", context}}, format, now);
  if (session.is_encoder()) {
    lines += format_event(
        "encoder", fmt::format("{} is an embedding model: it answers /v1/embeddings only", name),
        {{"model", name}}, format, now);
  } else if (!session.has_chat_template()) {
    lines +=
        format_event("no_chat_template",
                     fmt::format("{} is a base model without a chat template: it completes text "
                                 "(/v1/completions); chat needs --chat-template",
                                 name),
                     {{"model", name}}, format, now);
  }
  const std::array memory = memory_lines(session.memory());
  lines += format_event("memory", memory[0] + "\ndunlin: " + memory[1],
                        memory_json(session.memory()), format, now);
  fmt::print(stderr, "{}", lines);
  std::fflush(stderr);
}

int run_server(ServeFlags flags) {
  constexpr int kFilesBesides = 256;
  raise_file_limit(flags.server.max_connections + kFilesBesides);
  if (auto keys = read_keys(flags); !keys) return report(keys.error());
  PrefixDiskConfig& disk = flags.session.session.engine.prefix_disk;
  auto disk_bytes = parse_bytes(flags.prefix_disk_size);
  if (!disk_bytes) return report(disk_bytes.error().with_prefix("--prefix-cache-disk-size"));
  disk.max_bytes = *disk_bytes;
  disk.warn = [](const std::string& line) { fmt::print(stderr, "dunlin: {}\n", line); };
  auto session = open_session(flags.session);
  if (!session) return report(session.error());
  constexpr std::string_view kProgram = "dunlin ";
  flags.server.version = std::string_view(version_text()).substr(kProgram.size());
  flags.server.grace = std::chrono::seconds(flags.grace_s);
  flags.server.log_format = flags.log_format == "json" ? LogFormat::kJson : LogFormat::kText;
  flags.server.log_requests = flags.log_requests == "none"  ? LogRequests::kNone
                              : flags.log_requests == "all" ? LogRequests::kAll
                                                            : LogRequests::kGenerations;
  flags.server.on_listening = [&](const std::string& url, int) {
    tell_ready(**session, url, flags.server.log_format);
  };
  // A step of a large model or a slow kernel may take half a minute; nobody waits for its tokens.
  flags.server.on_stopped = [](int exit_code) {
    std::fflush(nullptr);
    std::_Exit(exit_code);
  };
  const auto code = serve(**session, flags.server);
  return exit_code(code);
}

void add_server_flags(CLI::App& command, ServeFlags& flags) {
  ServerConfig& server = flags.server;
  command.add_option("--host", server.host, "Address to listen on; 0.0.0.0 lets other machines in")
      ->capture_default_str()
      ->envname("DUNLIN_HOST");
  command.add_option("--port", server.port, "Port to listen on; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str()
      ->envname("DUNLIN_PORT");
  command
      .add_option("--api-key", flags.api_key,
                  "Clients must send it as a bearer token (default: none asked)")
      ->envname("DUNLIN_API_KEY");
  command
      .add_option("--api-keys", flags.api_keys_path,
                  "A file of several keys, a line each: NAME KEY [SHARE of the tokens]")
      ->envname("DUNLIN_API_KEYS");
  command
      .add_flag_callback(
          "--no-prefix-cache",
          [&engine = flags.session.session.engine] { engine.prefix_cache = false; },
          "Compute every prompt whole")
      ->envname("DUNLIN_NO_PREFIX_CACHE");
  command
      .add_option("--prefix-cache-dir", flags.session.session.engine.prefix_disk.dir,
                  "Folder that keeps the prefix cache across restarts (default: none)")
      ->envname("DUNLIN_PREFIX_CACHE_DIR");
  command
      .add_option("--prefix-cache-disk-size", flags.prefix_disk_size,
                  "Most that this folder may hold, as 512M or 8G")
      ->capture_default_str()
      ->envname("DUNLIN_PREFIX_CACHE_DISK_SIZE");
  command
      .add_option("--max-connections", server.max_connections, "Open connections; more get a 503")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str()
      ->envname("DUNLIN_MAX_CONNECTIONS");
  command
      .add_option("--model-name", flags.session.session.model_name,
                  "What the API calls the model (default: the name given)")
      ->envname("DUNLIN_MODEL_NAME");
  command
      .add_option("--grace", flags.grace_s,
                  "Seconds that running answers get after the first Ctrl-C")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str()
      ->envname("DUNLIN_GRACE");
  command
      .add_option("--log-format", flags.log_format,
                  "Of the lines on stderr: text, or json with an object a line")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str()
      ->envname("DUNLIN_LOG_FORMAT");
  command
      .add_option("--log-requests", flags.log_requests,
                  "Which requests get a line when they end: none, generations or all")
      ->check(CLI::IsMember({"none", "generations", "all"}))
      ->capture_default_str()
      ->envname("DUNLIN_LOG_REQUESTS");
}

}  // namespace

void add_serve(CLI::App& app, Invocation& invocation) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App& command = *app.add_subcommand("serve", "Serve OpenAI's API and a chat page over HTTP");
  add_session_flags(command, flags->session);
  add_schedule_flags(command, flags->schedule, flags->session.session.engine);
  add_server_flags(command, *flags);
  command.footer(
      "Examples:\n"
      "  dunlin serve smollm2-135m\n"
      "  dunlin serve model.gguf --host 0.0.0.0 --port 9000 --api-key secret --max-seqs 16\n"
      "  curl http://127.0.0.1:8080/v1/models");
  command.callback([flags, &invocation, &command] {
    apply_schedule_flags(command, flags->schedule, flags->session.session.engine);
    invocation.run = [flags] { return run_server(*flags); };
  });
}

}  // namespace dunlin::cli
