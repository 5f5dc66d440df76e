// dunlin tokenize: the ids and pieces of a text, for people.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "cli/commands.h"
#include "cli/model_flags.h"
#include "cli/model_store.h"
#include "frontend/model_text.h"

namespace dunlin::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string model, text, output = "text";
  bool add_special = false;
  FetchOptions fetch;
};

// In quotes, on one line; bytes that are no whole character as \xHH.
std::string quote_piece(std::string_view bytes) {
  std::string out = "\"";
  for (std::size_t pos = 0; pos < bytes.size();) {
    const Utf8Char c = decode_utf8(bytes, pos);
    const std::string_view piece = bytes.substr(pos, static_cast<std::size_t>(c.num_bytes));
    pos += piece.size();
    if (piece == "\n") {
      out += "\\n";
    } else if (piece == "\t") {
      out += "\\t";
    } else if (piece == "\"" || piece == "\\") {
      out.append("\\").append(piece);
    } else if (c.state != Utf8State::kValid || c.code_point < 0x20 || c.code_point == 0x7F) {
      for (const char byte : piece) {
        out += fmt::format("\\x{:02X}", static_cast<unsigned char>(byte));
      }
    } else {
      out += piece;
    }
  }
  return out + "\"";
}

void print(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, const std::string& output) {
  if (output == "ids") {
    fmt::print("{}\n", fmt::join(ids, " "));
  } else if (output == "json") {
    Json list = Json::array();
    for (TokenId id : ids) {
      list.push_back({{"id", id}, {"piece", repair_utf8(tokenizer.token_bytes(id, true))}});
    }
    fmt::print("{}\n", Json{{"count", ids.size()}, {"tokens", list}}.dump(2));
  } else {
    for (TokenId id : ids)
      fmt::print("{:>7}  {}\n", id, quote_piece(tokenizer.token_bytes(id, true)));
    fmt::print(stderr, "{} token{}\n", ids.size(), ids.size() == 1 ? "" : "s");
  }
}

Outcome run(const Flags& flags) {
  DUNLIN_ASSIGN(resolved, resolve_model(flags.model, flags.fetch));
  DUNLIN_ASSIGN(tokenizer, open_tokenizer(resolved.path));
  std::string text = flags.text;
  if (text == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  }
  std::vector<TokenId> ids = tokenizer->encode(text);
  if (flags.add_special) {
    const auto prefix = tokenizer->prefix_ids(), suffix = tokenizer->suffix_ids();
    ids.insert(ids.begin(), prefix.begin(), prefix.end());
    ids.insert(ids.end(), suffix.begin(), suffix.end());
  }
  print(*tokenizer, ids, flags.output);
  return {};
}

}  // namespace

void add_tokenize(CLI::App& app, Invocation& invocation) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *app.add_subcommand("tokenize", "Show the token ids and pieces of a text");
  add_model_options(command, "MODEL", flags->model, flags->fetch);
  command.add_option("TEXT", flags->text, "The text; - reads it from stdin")->required();
  command.add_option("--output", flags->output, "text (a token a line), ids (on one line) or json")
      ->check(CLI::IsMember({"text", "ids", "json"}))
      ->capture_default_str();
  command.add_flag("--add-special", flags->add_special,
                   "Also the tokens that the model wants in front of a prompt and behind it");
  command.footer(
      "The names of special tokens in TEXT are plain text, as in a user's message.\n\n"
      "Example:\n  dunlin tokenize smollm2-135m \"Why is the sky blue?\"");
  command.callback(
      [flags, &invocation] { invocation.run = [flags] { return exit_code(run(*flags)); }; });
}

}  // namespace dunlin::cli
