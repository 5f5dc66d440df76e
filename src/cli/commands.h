// The commands of the program: one file each, one row each in main.cc's table.
//
// A command adds its CLI11 subcommand (help text with an example, flags with their DUNLIN_*
// environment variables) and sets `invocation.run`, which main calls after parsing. A command
// returns an exit code: 0 done, 1 it failed (one line on stderr says why), 2 wrong usage.
// Results go to stdout, everything else to stderr. Only main() ends the process.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "dunlin/status.h"

namespace CLI {
class App;
}

namespace dunlin::cli {

struct Invocation {
  std::function<int()> run;  // set by the callback of the subcommand that was named
};

// Each adds one subcommand to `app`.
void add_tokenize(CLI::App& app, Invocation& invocation);
void add_run(CLI::App& app, Invocation& invocation);
void add_serve(CLI::App& app, Invocation& invocation);
void add_embed(CLI::App& app, Invocation& invocation);
void add_bench(CLI::App& app, Invocation& invocation);
void add_eval(CLI::App& app, Invocation& invocation);
void add_inspect(CLI::App& app, Invocation& invocation);
void add_plan(CLI::App& app, Invocation& invocation);
void add_convert(CLI::App& app, Invocation& invocation);
void add_pull(CLI::App& app, Invocation& invocation);
void add_list(CLI::App& app, Invocation& invocation);
void add_rm(CLI::App& app, Invocation& invocation);

// Below `dunlin debug`: JSON lines on stdin and stdout, in order.
void add_debug_tokenize(CLI::App& debug, Invocation& invocation);
void add_debug_template(CLI::App& debug, Invocation& invocation);
void add_debug_logits(CLI::App& debug, Invocation& invocation);

// Prints "dunlin: MESSAGE" on stderr (red where it is a terminal) and gives the exit code.
int report(const Status& status);
// Of a command that is done: 0 or what it says itself, or what report() gives.
int exit_code(const Outcome& outcome);
int exit_code(const Result<int>& code);
// The exit code where standard output can't be written, `error` being errno or 0: 1, and it is
// said; 141 in silence where the reader has gone.
int report_write_error(int error);
// The file that a flag asks for; kPermissionDenied with the flag's name where it can't be written.
Outcome write_asked_file(std::string_view flag, const std::string& path, std::string_view text);
// Prints what is good to know on stderr (dimmed where it is a terminal), one line in parentheses.
void note(const std::string& text);

}  // namespace dunlin::cli
