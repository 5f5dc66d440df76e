#include "cli/eval_text.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/eval_flags.h"
#include "eval/perplexity.h"

namespace dunlin::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxTextBytes = std::size_t{256} << 20;

struct TextFlags : EvalFlags {
  std::string file;
  int num_chunks = 0;
};

// "-": standard input.
Result<std::string> read_text(const std::string& path) {
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  std::istream& in = path == "-" ? std::cin : file;
  std::string text, part(1 << 20, '\0');
  while (in.read(part.data(), static_cast<std::streamsize>(part.size())) || in.gcount() > 0) {
    text.append(part, 0, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxTextBytes)
      return invalid(fmt::format("{} is longer than 256 MiB; give a part of it", path));
  }
  if (path != "-" && (!file.is_open() || file.bad()))
    return fail(StatusCode::kNotFound, fmt::format("can't read {}", path));
  return text;
}

Result<eval::Chunks> cut(const Session& session, const std::string& text, const TextFlags& flags) {
  auto chunks =
      eval::cut_into_chunks(session.tokenizer(), text, session.context_length(), flags.num_chunks);
  if (!chunks) return tl::unexpected(chunks.error().with_prefix(flags.file));
  return chunks;
}

Outcome run_perplexity(TextFlags flags) {
  EngineConfig& engine = flags.session.session.engine;
  eval::configure_scoring(engine, engine.max_context);
  DUNLIN_ASSIGN(text, read_text(flags.file));
  DUNLIN_ASSIGN(session, open_for_eval(flags.session));
  DUNLIN_ASSIGN(chunks, cut(*session, text, flags));
  EvalBar bar("scoring", flags);
  const Clock::time_point start = Clock::now();
  DUNLIN_ASSIGN(found, eval::measure_perplexity(session->engine(), chunks, bar.progress()));
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double speed = static_cast<double>(found.num_chunks) * chunks.context / seconds;
  const eval::Estimate perplexity = eval::exp_of(found.nll);
  if (flags.is_json()) {
    const Json json{{"model", session->config().model_name},
                    {"file", flags.file},
                    {"context", chunks.context},
                    {"num_chunks", found.num_chunks},
                    {"num_scored_tokens", found.num_scored},
                    {"perplexity", perplexity.value},
                    {"perplexity_error", perplexity.error},
                    {"mean_nll", found.nll.value},
                    {"mean_nll_error", found.nll.error},
                    {"elapsed_time", seconds},
                    {"tokens_per_second", speed}};
    fmt::print("{}\n", json.dump(2));
    return {};
  }
  fmt::print("perplexity: {:.4f} +/- {:.4f}\n", perplexity.value, perplexity.error);
  fmt::print("{} chunk{} of {} tokens, {} scored; {:.1f} s, {:.0f} tokens/s\n", found.num_chunks,
             found.num_chunks == 1 ? "" : "s", grouped(chunks.context), grouped(found.num_scored),
             seconds, speed);
  return {};
}

CLI::App& add_text_command(CLI::App& eval, const char* name, const char* help, TextFlags& flags) {
  CLI::App& command = add_eval_command(eval, name, help, flags);
  set_chunk_option(command, flags.session.session.engine);
  command.add_option("FILE", flags.file, "A text; - for standard input")->required();
  command.add_option("--chunks", flags.num_chunks, "Only so many chunks (default: all)")
      ->check(CLI::Range(1, 1 << 30));
  return command;
}

}  // namespace

void add_eval_perplexity(CLI::App& eval, Invocation& invocation) {
  auto flags = std::make_shared<TextFlags>();
  CLI::App& command =
      add_text_command(eval, "perplexity", "How well a model foretells a text", *flags);
  command.footer(
      "Chunks, scored tokens and the error are llama-perplexity's, so that figures compare.\n\n"
      "Example:\n  dunlin eval perplexity smollm2-135m text.txt --chunks 20");
  command.callback([flags, &invocation] {
    invocation.run = [flags] {
      const Outcome outcome = run_perplexity(*flags);
      return outcome ? 0 : report(outcome.error());
    };
  });
}

}  // namespace dunlin::cli
