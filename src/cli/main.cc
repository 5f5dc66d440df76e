// dunlin: the program. Builds the command table, parses, runs one command, ends the process.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/mapped_file.h"
#include "cli/commands.h"
#include "cli/self_description.h"
#include "cli/version.h"

namespace {

using AddCommand = void (*)(CLI::App&, dunlin::cli::Invocation&);

// One row a command, in the order that --help lists them.
constexpr AddCommand kCommands[] = {
    dunlin::cli::add_run,   dunlin::cli::add_serve,   dunlin::cli::add_embed,
    dunlin::cli::add_bench, dunlin::cli::add_eval,    dunlin::cli::add_inspect,
    dunlin::cli::add_plan,  dunlin::cli::add_convert, dunlin::cli::add_pull,
    dunlin::cli::add_list,  dunlin::cli::add_rm,      dunlin::cli::add_tokenize,
};

constexpr AddCommand kDebugCommands[] = {
    dunlin::cli::add_debug_logits,
    dunlin::cli::add_debug_template,
    dunlin::cli::add_debug_tokenize,
};

constexpr const char* kFooter =
    "Examples:\n"
    "  dunlin run smollm2-135m \"Why is the sky blue?\"   an answer in the terminal\n"
    "  dunlin serve smollm2-135m                        an OpenAI-compatible server and a chat "
    "page\n"
    "  dunlin inspect model.gguf                        what is in a file, and what it needs\n"
    "\n"
    "MODEL is a path to a GGUF file or a Hugging Face folder, a name from `dunlin list`, "
    "ORG/REPO,\n"
    "or hf:ORG/REPO/FILE.gguf.\n"
    "Each command explains itself: dunlin COMMAND --help";

// What CLI11 parses, last argument first. llama-batched-bench's -npp, -ntg and -npl are long names
// behind one dash, which CLI11 would take for bundled short flags.
std::vector<std::string> arguments(int argc, char** argv) {
  std::vector<std::string> reversed;
  for (int i = argc - 1; i > 0; --i) {
    const std::string_view arg = argv[i];
    const bool long_name = arg == "-npp" || arg == "-ntg" || arg == "-npl";
    reversed.push_back((long_name ? "-" : "") + std::string(arg));
  }
  return reversed;
}

// `dunlin debug describe`: what the build installs besides the program.
void add_describe(const CLI::App& app, CLI::App& debug, dunlin::cli::Invocation& invocation) {
  auto kind = std::make_shared<std::string>();
  CLI::App& command =
      *debug.add_subcommand("describe", "Print the manual page or a shell's completion");
  command.add_option("KIND", *kind, "man, bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"man", "bash", "zsh", "fish"}));
  command.callback([kind, &app, &invocation] {
    invocation.run = [kind, &app] {
      namespace cli = dunlin::cli;
      std::fputs((*kind == "man"    ? cli::man_page(app)
                  : *kind == "bash" ? cli::bash_completion(app)
                  : *kind == "zsh"  ? cli::zsh_completion(app)
                                    : cli::fish_completion(app))
                     .c_str(),
                 stdout);
      return 0;
    };
  });
}

// A file opened under the number of a standard stream would be written to as that stream: where one
// is closed, its number is taken by what can't be written.
void occupy_standard_streams() {
  while (true) {
    const int fd = open("/dev/null", O_RDONLY);
    if (fd > STDERR_FILENO) close(fd);
    if (fd < 0 || fd > STDERR_FILENO) return;
  }
}

int report_shortage(const char* message) {
  return dunlin::cli::report({dunlin::StatusCode::kResourceExhausted, message});
}

// Runs a command; what it printed must have arrived, or it has failed.
int run_to_the_end(const std::function<int()>& run) {
  try {
    const int code = run();
    const bool was_cut = std::ferror(stdout) != 0;
    errno = 0;
    const bool is_written = std::fflush(stdout) == 0 && !was_cut;
    return is_written || code != 0 ? code : dunlin::cli::report_write_error(errno);
  } catch (const std::system_error& error) {
    // fmt::print's, where the stream can't take it
    if (std::ferror(stdout) != 0) return dunlin::cli::report_write_error(error.code().value());
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    return report_shortage(
        "the system starts no more threads: take fewer (--threads), or allow more processes "
        "(ulimit -u) or address space (ulimit -v)");
  } catch (const std::bad_alloc&) {
    return report_shortage(
        "not enough memory: take a smaller model, --context or --threads, or allow more address "
        "space (ulimit -v); `dunlin plan` says what a model needs");
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);
  dunlin::install_mapped_file_fault_handler();
  CLI::App app{
      "Dunlin runs large language models on the CPU: in the terminal, over HTTP, in the browser."};
  app.name("dunlin");
  app.footer(kFooter);
  app.set_version_flag("--version", dunlin::cli::version_text());
  app.require_subcommand(0, 1);
  dunlin::cli::Invocation invocation;
  for (AddCommand add : kCommands) add(app, invocation);
  CLI::App& debug =
      *app.add_subcommand("debug", "Inner workings for scripts: JSON lines in, JSON lines out");
  debug.require_subcommand(0, 1);
  for (AddCommand add : kDebugCommands) add(debug, invocation);
  add_describe(app, debug, invocation);
  try {
    app.parse(arguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    return run_to_the_end([&] { return app.exit(error) == 0 ? 0 : 2; });
  }
  if (invocation.run) return run_to_the_end(invocation.run);
  // No command was given, or `debug` without one.
  std::fputs((app.get_subcommands().empty() ? app : debug).help().c_str(), stderr);
  return 2;
}
