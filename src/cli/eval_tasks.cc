#include "cli/eval_tasks.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/eval_flags.h"
#include "eval/heat_map.h"
#include "eval/needle.h"
#include "eval/recall.h"

namespace dunlin::cli {
namespace {

using Json = nlohmann::ordered_json;
using eval::NeedleTask;

constexpr int kMaxLength = 1 << 20, kMaxSamples = 1 << 16;

struct TaskFlags : EvalFlags {
  bool as_chat = false;
  std::uint64_t seed = 0;
  int num_samples = 0;
};

struct NeedleFlags : TaskFlags {
  NeedleTask task = NeedleTask::kPasskey;
  std::vector<int> lengths{512, 1024, 2048, 4096};
  std::vector<int> depths{0, 25, 50, 75, 100};
  std::string svg;
};

struct RecallFlags : TaskFlags {
  std::vector<int> num_pairs{16, 64, 256};
  int num_queries = 16;
};

const std::map<std::string, NeedleTask> kTasks = {{"passkey", NeedleTask::kPasskey},
                                                  {"needle", NeedleTask::kNeedle}};

std::string task_name(NeedleTask task) {
  return task == NeedleTask::kPasskey ? "passkey" : "needle";
}

CLI::App& add_task_command(CLI::App& eval, const char* name, const char* help, TaskFlags& flags) {
  CLI::App& command = add_eval_command(eval, name, help, flags);
  command.add_flag("--chat", flags.as_chat,
                   "Ask in the model's chat template (default: a text that it goes on with)");
  command.add_option("--seed", flags.seed, "Of the texts and what is asked about them")
      ->capture_default_str();
  command.add_option("--samples", flags.num_samples, "Texts of each kind")
      ->check(CLI::Range(1, kMaxSamples))
      ->capture_default_str();
  return command;
}

std::string grid_text(const eval::NeedleGrid& grid, NeedleTask task) {
  std::string text = fmt::format("{} found, {} texts a cell, by depth and length in tokens\n{:>5}",
                                 task_name(task), grid.num_samples, "");
  for (const int length : grid.lengths) text += fmt::format(" {:>8}", grouped(length));
  for (std::size_t d = 0; d < grid.depths.size(); ++d) {
    text += fmt::format("\n{:>4.0f}%", 100 * grid.depths[d]);
    for (std::size_t l = 0; l < grid.lengths.size(); ++l)
      text += fmt::format(" {:>7.0f}%", 100 * grid.share(d, l));
  }
  text += fmt::format("\n{:>5}", "all");
  for (std::size_t l = 0; l < grid.lengths.size(); ++l)
    text += fmt::format(" {:>7.0f}%", 100 * grid.share_of_length(l));
  return text + fmt::format("\nrecall: {:.1f}%\n", 100 * grid.share_of_all());
}

Json grid_json(const eval::NeedleGrid& grid, const NeedleFlags& flags, const std::string& model) {
  Json cells = Json::array();
  for (std::size_t d = 0; d < grid.depths.size(); ++d)
    for (std::size_t l = 0; l < grid.lengths.size(); ++l)
      cells.push_back(
          {{"depth", grid.depths[d]}, {"length", grid.lengths[l]}, {"recall", grid.share(d, l)}});
  return {
      {"model", model},           {"task", task_name(flags.task)}, {"chat", flags.as_chat},
      {"seed", flags.seed},       {"samples", flags.num_samples},  {"recall", grid.share_of_all()},
      {"cells", std::move(cells)}};
}

std::string grid_svg(const eval::NeedleGrid& grid, const NeedleFlags& flags,
                     const std::string& model) {
  eval::HeatMap map;
  map.title = fmt::format("{}: {} found", model, task_name(flags.task));
  map.row_title = "depth";
  map.column_title = "length in tokens";
  for (const double depth : grid.depths) map.rows.push_back(fmt::format("{:.0f}%", 100 * depth));
  for (const int length : grid.lengths) map.columns.push_back(grouped(length));
  for (std::size_t d = 0; d < grid.depths.size(); ++d)
    for (std::size_t l = 0; l < grid.lengths.size(); ++l) map.shares.push_back(grid.share(d, l));
  return eval::heat_map_svg(map);
}

Outcome run_needle(NeedleFlags flags) {
  EngineConfig& engine = flags.session.session.engine;
  engine.max_context = std::max(engine.max_context, *std::ranges::max_element(flags.lengths));
  DUNLIN_ASSIGN(session, open_for_eval(flags.session));
  eval::NeedleOptions options{flags.task,        flags.lengths, {},
                              flags.num_samples, flags.seed,    flags.as_chat};
  for (const int depth : flags.depths) options.depths.push_back(depth / 100.0);
  EvalBar bar("asking", flags);
  DUNLIN_ASSIGN(grid, eval::measure_needles(*session, options, bar.progress()));
  const std::string& model = session->config().model_name;
  if (!flags.svg.empty())
    DUNLIN_TRY(write_asked_file("--svg", flags.svg, grid_svg(grid, flags, model)));
  fmt::print("{}", flags.is_json() ? grid_json(grid, flags, model).dump(2) + "\n"
                                   : grid_text(grid, flags.task));
  return {};
}

Outcome run_recall(const RecallFlags& flags) {
  DUNLIN_ASSIGN(session, open_for_eval(flags.session));
  const eval::RecallOptions options{flags.num_pairs, flags.num_queries, flags.num_samples,
                                    flags.seed, flags.as_chat};
  EvalBar bar("asking", flags);
  DUNLIN_ASSIGN(rows, eval::measure_recall(*session, options, bar.progress()));
  if (flags.is_json()) {
    Json list = Json::array();
    for (const eval::RecallRow& row : rows)
      list.push_back({{"pairs", row.num_pairs},
                      {"prompt_tokens", row.num_tokens},
                      {"queries", row.num_queries},
                      {"recall", row.recall.value},
                      {"recall_error", row.recall.error}});
    const Json json{{"model", session->config().model_name},
                    {"chat", flags.as_chat},
                    {"seed", flags.seed},
                    {"samples", flags.num_samples},
                    {"rows", std::move(list)}};
    fmt::print("{}\n", json.dump(2));
    return {};
  }
  fmt::print("{:>6}  {:>7}  {:>7}  recall\n", "pairs", "tokens", "queries");
  for (const eval::RecallRow& row : rows)
    fmt::print("{:>6}  {:>7.0f}  {:>7}  {:.1f}% +/- {:.1f}%\n", grouped(row.num_pairs),
               row.num_tokens, grouped(row.num_queries), 100 * row.recall.value,
               100 * row.recall.error);
  return {};
}

}  // namespace

void add_eval_needle(CLI::App& eval, Invocation& invocation) {
  auto flags = std::make_shared<NeedleFlags>();
  flags->num_samples = 5;
  CLI::App& command = add_task_command(
      eval, "needle", "Whether a fact in a long text is found, by length and depth", *flags);
  command.add_option("--task", flags->task, "What is hidden: passkey (a number) or needle (words)")
      ->transform(CLI::CheckedTransformer(kTasks))
      ->default_str("passkey");
  add_list(command, "--lengths", flags->lengths, "Tokens of prompt and answer, comma separated", 1,
           kMaxLength);
  add_list(command, "--depths", flags->depths,
           "Where the fact stands, in per cent of the text, comma separated", 0, 100);
  command.add_option("--svg", flags->svg, "Writes the table as a heat map to this file");
  command.footer(
      "Example:\n  dunlin eval needle qwen2.5-coder-0.5b --lengths 1024,4096,16384 --svg map.svg");
  command.callback(
      [flags, &invocation] { invocation.run = [flags] { return exit_code(run_needle(*flags)); }; });
}

void add_eval_recall(CLI::App& eval, Invocation& invocation) {
  auto flags = std::make_shared<RecallFlags>();
  flags->num_samples = 4;
  CLI::App& command = add_task_command(
      eval, "recall", "Which numbers of a list of names and numbers come back", *flags);
  add_list(command, "--pairs", flags->num_pairs, "Lines of a list, comma separated", 1, 1 << 16);
  command.add_option("--queries", flags->num_queries, "Names asked for, of each list")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  command.footer("Example:\n  dunlin eval recall smollm2-135m --pairs 32,128 --queries 32");
  command.callback(
      [flags, &invocation] { invocation.run = [flags] { return exit_code(run_recall(*flags)); }; });
}

}  // namespace dunlin::cli
