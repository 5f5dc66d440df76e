// dunlin eval: how good a model's answers are, and what settings cost of that.
#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/eval_kv.h"
#include "cli/eval_tasks.h"
#include "cli/eval_text.h"

namespace dunlin::cli {

void add_eval(CLI::App& app, Invocation& invocation) {
  CLI::App& command =
      *app.add_subcommand("eval", "Measure the quality of a model and of its settings");
  command.require_subcommand(1);
  command.footer("Each explains itself: dunlin eval perplexity --help");
  add_eval_perplexity(command, invocation);
  add_eval_kld(command, invocation);
  add_eval_needle(command, invocation);
  add_eval_recall(command, invocation);
  add_eval_kv(command, invocation);
}

}  // namespace dunlin::cli
