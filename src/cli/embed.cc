// dunlin embed: the vectors of texts.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/session_flags.h"
#include "frontend/embedding.h"

namespace dunlin::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  SessionFlags session;
  EmbeddingOptions options;
  std::vector<std::string> texts;
  std::string pooling, output = "text";
  bool not_normalized = false, truncate = false;
};

constexpr std::size_t kMaxPipedBytes = 64 << 20;

// A text a line.
Result<std::vector<std::string>> piped_texts() {
  std::vector<std::string> texts;
  std::size_t num_bytes = 0;
  for (std::string line; std::getline(std::cin, line);) {
    num_bytes += line.size() + 1;
    if (num_bytes > kMaxPipedBytes)
      return invalid("standard input is longer than 64 MiB; give it in parts");
    texts.push_back(std::move(line));
  }
  if (texts.empty()) return invalid("there is no text: give TEXT, or a text a line from a pipe");
  return texts;
}

Result<std::vector<std::vector<TokenId>>> tokens_of(const Session& session, const Flags& flags) {
  std::vector<std::vector<TokenId>> tokens;
  for (std::size_t i = 0; i < flags.texts.size(); ++i) {
    const int context = session.context_length();
    if (flags.texts[i].empty()) return invalid(fmt::format("text {} is empty", i + 1));
    tokens.push_back(
        session.embedding_prompt(repair_utf8(flags.texts[i]), true, flags.truncate ? context : 0));
    if (tokens.back().empty())
      return invalid(fmt::format("text {} has no token that the model knows", i + 1));
    if (tokens.back().size() > static_cast<std::size_t>(context))
      return invalid(fmt::format(
          "text {} has {} tokens, but the model's context holds {}; shorten it, or cut all texts "
          "to what fits with --truncate",
          i + 1, tokens.back().size(), context));
  }
  return tokens;
}

void print_text(const std::vector<float>& vector) { fmt::print("{}\n", fmt::join(vector, " ")); }

void print_json(const Flags& flags, const EmbeddingJob& job, const std::string& model) {
  std::string out = R"({"model":)" + Json(model).dump() + R"(,"data":[)";
  for (std::size_t i = 0; i < job.vectors().size(); ++i)
    out += fmt::format("{}{{\"index\":{},\"text\":{},\"embedding\":[{}]}}", i == 0 ? "" : ",", i,
                       Json(repair_utf8(flags.texts[i])).dump(), fmt::join(job.vectors()[i], ","));
  fmt::print("{}],\"prompt_tokens\":{}}}\n", out, job.num_prompt_tokens());
}

Outcome run(Flags flags) {
  if (flags.texts.empty()) {
    if (isatty(STDIN_FILENO) != 0)
      return invalid("there is no text: give TEXT, or a text a line from a pipe");
    DUNLIN_ASSIGN(texts, piped_texts());
    flags.texts = std::move(texts);
  }
  flags.options.pooling = parse_pooling(flags.pooling).value_or(Pooling::kNone);
  flags.options.normalize = !flags.not_normalized;
  DUNLIN_ASSIGN(session, open_session(flags.session));
  const int size = session->engine().limits().hidden_size;
  if (flags.options.dimensions > size)
    return invalid(fmt::format("--dimensions is {}, but the model's embeddings have {}",
                               flags.options.dimensions, size));
  DUNLIN_ASSIGN(tokens, tokens_of(*session, flags));
  EmbeddingJob job(session->engine(), std::move(tokens), flags.options);
  while (!job.finished()) job.wait(std::chrono::milliseconds(1000));
  if (job.error()) return tl::unexpected<Status>(*job.error());
  if (flags.output == "json")
    print_json(flags, job, session->config().model_name);
  else
    for (const std::vector<float>& vector : job.vectors()) print_text(vector);
  return {};
}

}  // namespace

void add_embed(CLI::App& app, Invocation& invocation) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command =
      *app.add_subcommand("embed", "Turn texts into vectors that are close where the meaning is");
  add_session_flags(command, flags->session);
  command.add_option("TEXT", flags->texts,
                     "The texts; without any: a text a line from standard input");
  command.add_option("--output", flags->output, "text (a vector a line) or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command
      .add_option("--pooling", flags->pooling,
                  "mean of all tokens, cls (the first) or last (default: what the model says; else "
                  "mean for encoders, last for others)")
      ->check(CLI::IsMember({"mean", "cls", "last"}));
  command
      .add_option("--dimensions", flags->options.dimensions,
                  "Only so many elements from the front, for models trained so (Matryoshka)")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  command.add_flag("--no-normalize", flags->not_normalized, "Not scaled to length 1");
  command.add_flag("--truncate", flags->truncate, "Cut texts that are longer than the context");
  command.footer(
      "Vectors have length 1, so the product of two (the sum of their elements' products) is the\n"
      "cosine of the angle between them: near 1 for texts that mean the same. MODEL is best an\n"
      "embedding model, such as sentence-transformers/all-MiniLM-L6-v2; any other gives vectors "
      "too.\n\n"
      "Examples:\n"
      "  dunlin embed sentence-transformers/all-MiniLM-L6-v2 \"A cat sits on the mat.\"\n"
      "  dunlin embed ./all-MiniLM-L6-v2 --output json < sentences.txt > vectors.json\n"
      "  dunlin serve ./all-MiniLM-L6-v2        the same as POST /v1/embeddings");
  command.callback(
      [flags, &invocation] { invocation.run = [flags] { return exit_code(run(*flags)); }; });
}

}  // namespace dunlin::cli
