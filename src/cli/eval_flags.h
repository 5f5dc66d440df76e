// What the evaluations share: a model, the way to the figures, a bar while they are made.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "cli/session_flags.h"
#include "eval/request_runner.h"

namespace CLI {
class App;
}

namespace dunlin::cli {

struct EvalFlags {
  SessionFlags session;
  std::string output = "text";

  bool is_json() const { return output == "json"; }
};

// Adds a subcommand with MODEL and its flags, --quiet and --output.
CLI::App& add_eval_command(CLI::App& eval, const char* name, const char* help, EvalFlags& flags);

// --context as the length of a chunk of text: no environment variable changes what is measured.
void set_chunk_option(CLI::App& command, EngineConfig& engine);

// Numbers, comma separated in one argument.
void add_list(CLI::App& command, const char* name, std::vector<int>& values, const char* help,
              int least, int most);

// All of a file, at most 256 MiB; "-": standard input.
Result<std::string> read_text(const std::string& path);

// Opens the model; refuses one that writes no text.
Result<std::unique_ptr<Session>> open_for_eval(const SessionFlags& flags);

// Shows on a terminal, unless quiet, how many requests are done.
class EvalBar {
 public:
  EvalBar(const char* label, const EvalFlags& flags);
  eval::Progress progress();  // while the bar is there

 private:
  ProgressBar bar_;
};

}  // namespace dunlin::cli
