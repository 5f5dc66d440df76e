#include "cli/session_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "cli/model_flags.h"
#include "cli/progress.h"
#include "cpu/memory_limit.h"

namespace dunlin::cli {
namespace {

constexpr std::size_t kMaxTemplateBytes = 1 << 20;

// The text of a template given as a file, or as itself where it holds Jinja marks.
Result<std::string> template_text(const std::string& flag) {
  if (flag.empty() || flag.find("{%") != std::string::npos || flag.find("{{") != std::string::npos)
    return flag;
  std::ifstream file(flag, std::ios::binary);
  std::string text(kMaxTemplateBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || !file.is_open())
    return fail(StatusCode::kNotFound, fmt::format("--chat-template: can't read {}", flag));
  if (!file.eof()) return invalid(fmt::format("--chat-template: {} is longer than 1 MiB", flag));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

// A size that a flag gives; "" leaves `bytes` as it is.
Outcome read_size(std::string_view flag, const std::string& text, std::int64_t& bytes) {
  if (text.empty()) return {};
  const auto parsed = parse_bytes(text);
  if (!parsed) return tl::unexpected(parsed.error().with_prefix(flag));
  const std::int64_t total = memory_limit().total_bytes;
  if (total > 0 && *parsed > total) {
    return invalid(fmt::format("{}: {} is more than the {:.1f} GiB that this process may use", flag,
                               text, static_cast<double>(total) / 0x1p30));
  }
  bytes = *parsed;
  return {};
}

}  // namespace

void add_session_flags(CLI::App& command, SessionFlags& flags) {
  add_model_options(command, "MODEL", flags.model, flags.fetch).envname("DUNLIN_MODEL");
  add_quantize_option(command, flags.session.quantize);
  EngineConfig& engine = flags.session.engine;
  command
      .add_option(
          "--context", engine.max_context,
          "Tokens a sequence may hold, prompt and answer (default: the model's, or what fits)")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()))
      ->envname("DUNLIN_CONTEXT");
  add_compute_options(command, "--threads", flags.session.num_threads, flags.session.isa);
  add_cache_type_options(command, flags.session.kv_formats);
  command.add_option("--max-seqs", engine.max_seqs, "Sequences computed at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str()
      ->envname("DUNLIN_MAX_SEQS");
  command
      .add_option("--memory", flags.memory,
                  "Memory for all of it, as 2G: weights, KV cache and the rest (default: what is "
                  "free, less a margin)")
      ->envname("DUNLIN_MEMORY");
  command
      .add_option("--kv-memory", flags.kv_memory,
                  "Memory of the KV cache alone, as 512M or 2G (default: what fits)")
      ->envname("DUNLIN_KV_MEMORY");
  add_kv_policy_option(command, flags.kv_policy).envname("DUNLIN_KV_POLICY");
  command
      .add_option("--chat-template", flags.chat_template,
                  "A Jinja file that replaces the model's chat template")
      ->envname("DUNLIN_CHAT_TEMPLATE");
}

CLI::Option& add_kv_policy_option(CLI::App& command, std::string& policy) {
  return *command
              .add_option("--kv-policy", policy,
                          "What of a text its later tokens see: full, "
                          "window,sinks=4,window=1024, quest,budget=2048, h2o,budget=2048 (or 20% "
                          "of the prompt) or snapkv,budget=2048,window=32,pool=7 (a request may "
                          "name its own)")
              ->capture_default_str()
              ->check([](const std::string& text) {
                const auto parsed = parse_kv_policy(text);
                return parsed ? std::string() : parsed.error().message();
              });
}

Result<std::unique_ptr<Session>> open_session(SessionFlags flags) {
  DUNLIN_ASSIGN(model, resolve_model(flags.model, flags.fetch));
  flags.session.model_path = model.path;
  if (flags.session.model_name.empty()) flags.session.model_name = model.name;
  DUNLIN_TRY(read_size("--memory", flags.memory, flags.session.memory_bytes));
  DUNLIN_TRY(read_size("--kv-memory", flags.kv_memory, flags.session.engine.kv_bytes));
  DUNLIN_ASSIGN(policy, parse_kv_policy(flags.kv_policy));
  flags.session.engine.kv_policy = policy;
  DUNLIN_ASSIGN(text, template_text(flags.chat_template));
  flags.session.chat_template = std::move(text);
  // Small models open faster than a line can be read, so nothing is said to a file.
  ProgressBar bar(fmt::format("opening {}", flags.session.model_name),
                  flags.fetch.quiet || !ProgressBar::on_terminal());
  return Session::open(flags.session, [&](std::string_view phase, double fraction) {
    bar.update_fraction(fraction, std::string(phase));
  });
}

Result<std::int64_t> parse_bytes(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  std::string unit(end);
  while (!unit.empty() && (unit.back() == 'B' || unit.back() == 'b' || unit.back() == 'i'))
    unit.pop_back();
  constexpr std::string_view kUnits = "KMGT";
  double scale = 1;
  if (!unit.empty()) {
    const auto at =
        kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
    if (unit.size() != 1 || at == std::string_view::npos)
      return invalid(fmt::format("'{}' is not a size; write 512M or 2G", text));
    scale = std::ldexp(1.0, 10 * (static_cast<int>(at) + 1));
  }
  if (end == text.c_str() || !(value > 0) || value * scale > 0x1p62)
    return invalid(fmt::format("'{}' is not a size; write 512M or 2G", text));
  return static_cast<std::int64_t>(value * scale);
}

}  // namespace dunlin::cli
