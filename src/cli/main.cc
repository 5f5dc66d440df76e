// dunlin: the program. Builds the command table, parses, runs one command, ends the process.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "cli/commands.h"
#include "cli/version.h"

namespace {

using AddCommand = void (*)(CLI::App&, dunlin::cli::Invocation&);

// One row a command, in the order that --help lists them.
constexpr AddCommand kCommands[] = {
    dunlin::cli::add_pull,
    dunlin::cli::add_list,
    dunlin::cli::add_rm,
};

constexpr AddCommand kDebugCommands[] = {};

constexpr const char* kFooter =
    "Examples:\n"
    "  dunlin run smollm2-135m \"Why is the sky blue?\"   an answer in the terminal\n"
    "  dunlin serve smollm2-135m                        an OpenAI-compatible server and a chat "
    "page\n"
    "  dunlin inspect model.gguf                        what is in a file, and what it needs\n"
    "\n"
    "MODEL is a path to a GGUF file, a name from `dunlin list`, or hf:ORG/REPO/FILE.gguf.\n"
    "Each command explains itself: dunlin COMMAND --help";

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app{
      "Dunlin runs large language models on the CPU: in the terminal, over HTTP, in the browser."};
  app.name("dunlin");
  app.footer(kFooter);
  app.set_version_flag("--version", dunlin::cli::version_text());
  app.require_subcommand(1);
  dunlin::cli::Invocation invocation;
  for (AddCommand add : kCommands) add(app, invocation);
  CLI::App& debug =
      *app.add_subcommand("debug", "Inner workings for scripts: JSON lines in, JSON lines out");
  debug.require_subcommand(1);
  for (AddCommand add : kDebugCommands) add(debug, invocation);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return invocation.run ? invocation.run() : 2;
}
