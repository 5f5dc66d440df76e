#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <memory>
#include <random>

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
};

void add_sampling_flags(CLI::App& command, RunFlags& flags) {
  SamplingParams& sampling = flags.chat.generation.sampling;
  sampling.temperature = 0.7f;
  sampling.top_p = 0.95f;
  command.add_option("--temperature", sampling.temperature, "0 always takes the likeliest token")
      ->capture_default_str();
  command.add_option("--top-k", sampling.top_k, "Only the k likeliest tokens; 0: all")
      ->capture_default_str();
  command
      .add_option("--top-p", sampling.top_p, "Only the likeliest tokens that make up this share")
      ->capture_default_str();
  command
      .add_option("--min-p", sampling.min_p,
                  "Only tokens with this share of the likeliest one's chance")
      ->capture_default_str();
  command.add_option("--repetition-penalty", sampling.repetition_penalty, "Above 1 repeats less")
      ->capture_default_str();
  command.add_option("--seed", sampling.seed, "The same seed gives the same answer")
      ->each([&flags](const std::string&) { flags.seed_given = true; });
  command
      .add_option("--max-tokens", sampling.max_tokens,
                  "Longest answer, in tokens (default: what the context holds)")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--stop", flags.chat.generation.stop.strings,
                     "A text that ends the answer; may be given several times");
}

int run(RunFlags flags) {
  const bool piped = isatty(STDIN_FILENO) == 0;
  if (flags.prompt.empty() && piped) {
    flags.prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
    if (flags.prompt.empty())
      return report(
          Status(StatusCode::kInvalidArgument, "the prompt from standard input is empty"));
  }
  if (!flags.seed_given) flags.chat.generation.sampling.seed = std::random_device()();
  flags.session.session.engine.max_seqs = std::min(flags.session.session.engine.max_seqs, 1);
  auto session = open_session(flags.session);
  if (!session) return report(session.error());
  return flags.prompt.empty() ? chat(**session, flags.chat)
                              : answer_once(**session, flags.prompt, flags.chat);
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
      "  dunlin run smollm2-135m                     a chat; /help lists its commands");
  command.callback([flags, &invocation] { invocation.run = [flags] { return run(*flags); }; });
}

}  // namespace dunlin::cli
