// dunlin debug tokenize: token ids of texts, for scripts that compare tokenizers.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/model_flags.h"
#include "cli/model_store.h"
#include "frontend/model_text.h"

namespace dunlin::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string model;
  bool vocab_only = false;
  FetchOptions fetch;
};

// Reads a field that may be missing; false where it is of another type.
bool read_bool(const Json& line, const char* field, bool& value) {
  const auto at = line.find(field);
  if (at == line.end()) return true;
  if (!at->is_boolean()) return false;
  value = at->get<bool>();
  return true;
}

// The answer to one line, as text; an error is an answer too.
std::string answer(const Tokenizer& tokenizer, const std::string& text) {
  const Json line = Json::parse(text, nullptr, false);
  if (line.is_discarded()) return R"({"id":null,"error":"the line is not JSON"})";
  const Json id = line.is_object() && line.contains("id") ? line["id"] : Json();
  const auto refuse = [&](const char* why) { return Json{{"id", id}, {"error", why}}.dump(); };
  if (!line.is_object() || !line.contains("text") || !line["text"].is_string()) {
    return refuse("a line must be an object with a string \"text\"");
  }
  bool add_special = false, parse_special = false;
  if (!read_bool(line, "add_special", add_special)) {
    return refuse("\"add_special\" must be true or false");
  }
  if (!read_bool(line, "parse_special", parse_special)) {
    return refuse("\"parse_special\" must be true or false");
  }
  std::vector<TokenId> ids =
      tokenizer.encode(line["text"].get_ref<const std::string&>(), parse_special);
  if (add_special) {
    const auto prefix = tokenizer.prefix_ids(), suffix = tokenizer.suffix_ids();
    ids.insert(ids.begin(), prefix.begin(), prefix.end());
    ids.insert(ids.end(), suffix.begin(), suffix.end());
  }
  return Json{{"id", id}, {"ids", ids}}.dump();
}

Outcome run(const Flags& flags) {
  DUNLIN_ASSIGN(resolved, resolve_model(flags.model, flags.fetch));
  DUNLIN_ASSIGN(tokenizer, open_tokenizer(resolved.path));
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string out = answer(*tokenizer, line) + "\n";
    if (std::fwrite(out.data(), 1, out.size(), stdout) != out.size() || std::fflush(stdout) != 0) {
      return fail(StatusCode::kUnavailable, "stdout was closed");
    }
  }
  return {};
}

}  // namespace

void add_debug_tokenize(CLI::App& debug, Invocation& invocation) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command =
      *debug.add_subcommand("tokenize",
                            "Token ids of texts: {\"id\",\"text\",\"add_special\"} a line on "
                            "stdin, {\"id\",\"ids\"} on stdout");
  add_model_options(command, "--model", flags->model, flags->fetch);
  command.add_flag("--vocab-only", flags->vocab_only,
                   "The file has a vocabulary and no weights (weights are never read here)");
  command.footer(
      "\"add_special\" (default false) adds the tokens in front of a prompt and behind it.\n"
      "\"parse_special\" (default false) takes the names of special tokens for the tokens.\n\n"
      "Example:\n  echo '{\"id\": 1, \"text\": \"Hello\"}' | dunlin debug tokenize --model "
      "smollm2-135m");
  command.callback(
      [flags, &invocation] { invocation.run = [flags] { return exit_code(run(*flags)); }; });
}

}  // namespace dunlin::cli
