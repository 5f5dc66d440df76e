// dunlin debug logits: a model's logits for given token ids, for scripts that compare engines.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/model_flags.h"
#include "cli/model_store.h"
#include "kernels/softmax.h"
#include "model/open_model.h"
#include "model/single_sequence.h"

namespace dunlin::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string model;
  std::string isa = "auto";
  int threads = 0;
  FetchOptions fetch;
};

struct Question {
  std::vector<TokenId> ids;
  std::vector<std::int32_t> positions;  // ascending, without repeats
  std::optional<int> top;
};

std::optional<std::vector<std::int32_t>> read_integers(const Json& line, const char* field,
                                                       std::int64_t end) {
  const auto at = line.find(field);
  if (at == line.end() || !at->is_array()) return std::nullopt;
  std::vector<std::int32_t> values;
  for (const Json& value : *at) {
    if (!value.is_number_integer()) return std::nullopt;
    const auto number = value.get<std::int64_t>();
    if (number < 0 || number >= end) return std::nullopt;
    values.push_back(static_cast<std::int32_t>(number));
  }
  return values;
}

Result<Question> parse_question(const Json& line, const ModelLimits& limits) {
  Question question;
  if (!line.is_object()) return invalid("a line must be an object with \"id\" and \"ids\"");
  auto ids = read_integers(line, "ids", limits.vocab_size);
  if (!ids || ids->empty()) {
    return invalid(
        fmt::format("\"ids\" must be a list of token ids from 0 to {}", limits.vocab_size - 1));
  }
  if (std::ssize(*ids) > limits.context_length) {
    return invalid(fmt::format("\"ids\" has {} tokens, but the model's context is {}", ids->size(),
                               limits.context_length));
  }
  question.ids = std::move(*ids);
  if (line.contains("positions")) {
    auto positions = read_integers(line, "positions", std::ssize(question.ids));
    if (!positions) {
      return invalid(fmt::format("\"positions\" must be a list of numbers from 0 to {}",
                                 question.ids.size() - 1));
    }
    question.positions = std::move(*positions);
    std::sort(question.positions.begin(), question.positions.end());
    const auto repeats = std::unique(question.positions.begin(), question.positions.end());
    question.positions.erase(repeats, question.positions.end());
  } else {
    question.positions = {static_cast<std::int32_t>(question.ids.size()) - 1};
  }
  if (const auto top = line.find("top"); top != line.end() && !top->is_null()) {
    if (!top->is_number_integer() || top->get<std::int64_t>() < 1) {
      return invalid("\"top\" must be a positive integer");
    }
    question.top =
        static_cast<int>(std::min<std::int64_t>(top->get<std::int64_t>(), limits.vocab_size));
  }
  return question;
}

// The shortest text that reads back as the same number; JSON has none for what is not finite.
template <typename Number>
void append_number(std::string& out, Number value) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(out), "{}", value);
  } else {
    out += "null";
  }
}

void append_row(std::string& out, std::span<const float> row) {
  out += '[';
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) out += ',';
    append_number(out, row[i]);
  }
  out += ']';
}

// Pairs [id, log-probability], the likeliest first; among equals the lowest id.
void append_top(std::string& out, std::span<const float> row, int top) {
  const double norm = log_sum_exp(Isa::kReference, row.data(), std::ssize(row));
  std::vector<std::size_t> order(row.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::partial_sort(
      order.begin(), order.begin() + top, order.end(),
      [&](std::size_t a, std::size_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
  out += '[';
  for (int i = 0; i < top; ++i) {
    const std::size_t id = order[static_cast<std::size_t>(i)];
    fmt::format_to(std::back_inserter(out), "{}[{},", i == 0 ? "" : ",", id);
    append_number(out, row[id] - norm);
    out += ']';
  }
  out += ']';
}

// The answer to one line, as text; an error is an answer too.
std::string answer(Model& model, const std::string& text) {
  const Json line = Json::parse(text, nullptr, false);
  if (line.is_discarded()) return R"({"id":null,"error":"the line is not JSON"})";
  const Json id = line.is_object() && line.contains("id") ? line["id"] : Json();
  const Result<Question> question = parse_question(line, model.limits());
  if (!question) return Json{{"id", id}, {"error", question.error().message()}}.dump();

  std::string out = fmt::format("{{\"id\":{},\"rows\":{{", id.dump());
  bool first = true;
  SingleSequence sequence(model, static_cast<int>(question->ids.size()));
  sequence.append(
      question->ids, question->positions, [&](std::int32_t position, std::span<const float> row) {
        fmt::format_to(std::back_inserter(out), "{}\"{}\":", first ? "" : ",", position);
        first = false;
        if (question->top) {
          append_top(out, row, *question->top);
        } else {
          append_row(out, row);
        }
      });
  return out + "}}";
}

Outcome run(const Flags& flags) {
  DUNLIN_ASSIGN(isa, parse_isa(flags.isa));
  DUNLIN_ASSIGN(resolved, resolve_model(flags.model, flags.fetch));
  LoadOptions options;
  options.isa = isa;
  options.num_threads = flags.threads;
  // The exact path also keeps exact keys and values.
  if (isa == Isa::kReference) options.kv_formats = KvFormat::kF32;
  DUNLIN_ASSIGN(opened, open_model(resolved.path, options));
  if (opened.config.is_encoder)
    return invalid(fmt::format("{}: an encoder has no logits; see `dunlin embed`", resolved.path));
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string out = answer(*opened.model, line) + "\n";
    if (std::fwrite(out.data(), 1, out.size(), stdout) != out.size() || std::fflush(stdout) != 0) {
      return fail(StatusCode::kUnavailable, "stdout was closed");
    }
  }
  return {};
}

}  // namespace

void add_debug_logits(CLI::App& debug, Invocation& invocation) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command = *debug.add_subcommand(
      "logits",
      "Logits of token ids: {\"id\",\"ids\",\"positions\",\"top\"} a line on stdin, "
      "{\"id\",\"rows\":{\"POSITION\":[...]}} on stdout");
  add_model_options(command, "--model", flags->model, flags->fetch);
  add_compute_options(command, "--threads", flags->threads, flags->isa);
  command.footer(
      "Rows are whole rows of logits, or with \"top\": n the n likeliest as [id, "
      "log-probability].\nWithout \"positions\": the last one.\n\nExample:\n  echo '{\"id\": 1, "
      "\"ids\": [504, 3575, 282, 4649, 314], \"top\": 5}' | \\\n    dunlin debug logits --model "
      "smollm2-135m --isa reference");
  command.callback(
      [flags, &invocation] { invocation.run = [flags] { return exit_code(run(*flags)); }; });
}

}  // namespace dunlin::cli
