#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <random>

#include "base/utf8.h"
#include "cli/chat.h"
#include "cli/commands.h"
#include "cli/session_flags.h"

namespace dunlin::cli {
namespace {

struct RunFlags {
  SessionFlags session;
  ChatOptions chat;
  std::string prompt;
  bool seed_given = false;
  // Sampling flags, with the field that each sets.
  struct Drawing {
    CLI::Option* option;
    void (*take)(const SamplingParams& from, SamplingParams& to);
  };
  std::vector<Drawing> drawing;
};

void add_sampling_flags(CLI::App& command, RunFlags& flags) {
  SamplingParams& sampling = flags.chat.generation.sampling;
  sampling.temperature = 0.7f;
  sampling.top_p = 0.95f;
  const auto add = [&](const char* name, auto& value, const char* help, auto take) {
    flags.drawing.push_back({command.add_option(name, value, help)->capture_default_str(), take});
  };
  using Params = SamplingParams;
  add("--temperature", sampling.temperature, "0 always takes the likeliest token",
      [](const Params& from, Params& to) { to.temperature = from.temperature; });
  add("--top-k", sampling.top_k, "Only the k likeliest tokens; 0: all",
      [](const Params& from, Params& to) { to.top_k = from.top_k; });
  add("--top-p", sampling.top_p, "Only the likeliest tokens that make up this share",
      [](const Params& from, Params& to) { to.top_p = from.top_p; });
  add("--min-p", sampling.min_p, "Only tokens with this share of the likeliest one's chance",
      [](const Params& from, Params& to) { to.min_p = from.min_p; });
  add("--repetition-penalty", sampling.repetition_penalty, "Above 1 repeats less",
      [](const Params& from, Params& to) { to.repetition_penalty = from.repetition_penalty; });
  command.add_option("--seed", sampling.seed, "The same seed gives the same answer")
      ->check([](const std::string& text) {
        std::uint64_t seed = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
        const bool is_whole = error == std::errc() && end == text.data() + text.size();
        return is_whole ? "" : "must be a whole number from 0 to 18446744073709551615";
      })
      ->each([&flags](const std::string&) { flags.seed_given = true; });
  command
      .add_option("--max-tokens", sampling.max_tokens,
                  "Longest answer, in tokens (default: what the context holds)")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()));
  command
      .add_option("--stop", flags.chat.generation.stop.strings,
                  "A text that ends the answer; may be given several times")
      ->allow_extra_args(false);  // what follows it is the prompt
}

constexpr std::size_t kMaxPipedBytes = 16 << 20;

// All of standard input as a prompt: without the line feed that ends its last line.
Result<std::string> piped_prompt() {
  std::string text;
  char buffer[1 << 16];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof(buffer), stdin)) > 0;) {
    text.append(buffer, n);
    if (text.size() > kMaxPipedBytes)
      return invalid("the prompt from standard input is longer than 16 MiB");
  }
  if (std::ferror(stdin) != 0)
    return fail(StatusCode::kDataLoss,
                fmt::format("can't read standard input: {}", std::strerror(errno)));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return invalid(
        "the prompt from standard input is empty; give PROMPT, or start a chat from a terminal");
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

int run(RunFlags flags) {
  const bool chatting = flags.prompt.empty() && isatty(STDIN_FILENO) != 0;
  if (flags.prompt.empty() && !chatting) {
    auto prompt = piped_prompt();
    if (!prompt) return report(prompt.error());
    flags.prompt = std::move(*prompt);
  }
  flags.prompt = repair_utf8(flags.prompt);
  flags.chat.system = repair_utf8(flags.chat.system);
  if (!flags.seed_given) flags.chat.generation.sampling.seed = std::random_device()();
  flags.session.session.engine.max_seqs = std::min(flags.session.session.engine.max_seqs, 1);
  auto session = open_session(flags.session);
  if (!session) return report(session.error());
  if ((*session)->is_encoder())
    return report({StatusCode::kInvalidArgument, encoder_refusal(**session)});
  // What the model's authors recommend comes before our defaults, and behind what was asked for.
  const SessionConfig& config = (*session)->config();
  for (const RunFlags::Drawing& drawing : flags.drawing)
    if (config.model_recommends_sampling && drawing.option->count() == 0)
      drawing.take(config.sampling, flags.chat.generation.sampling);
  return chatting ? chat(**session, flags.chat) : answer_once(**session, flags.prompt, flags.chat);
}

}  // namespace

void add_run(CLI::App& app, Invocation& invocation) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App& command = *app.add_subcommand("run", "Answer a prompt, or chat, in the terminal");
  add_session_flags(command, flags->session);
  command.add_option("PROMPT", flags->prompt,
                     "What to ask; without it: a chat, or the text from a pipe");
  command.add_option("--system", flags->chat.system, "System message");
  command.add_flag("--verbose", flags->chat.verbose,
                   "Time to first token, tokens/s and counts, on stderr");
  add_sampling_flags(command, *flags);
  command.footer(
      "Examples:\n"
      "  dunlin run smollm2-135m \"Why is the sky blue?\"\n"
      "  git diff | dunlin run qwen2.5-coder-0.5b --system \"Write a commit message for this "
      "change.\"\n"
      "  echo \"Why is the sky blue?\" | dunlin run smollm2-135m > answer.txt\n"
      "  dunlin run smollm2-135m                     a chat; /help lists its commands and keys\n"
      "\n"
      "In the chat Ctrl-C stops the answer, Ctrl-D leaves. DUNLIN_HISTORY names the file that "
      "keeps\nwhat was typed (default: ~/.local/state/dunlin/history); empty: none.");
  command.callback([flags, &invocation] { invocation.run = [flags] { return run(*flags); }; });
}

}  // namespace dunlin::cli
