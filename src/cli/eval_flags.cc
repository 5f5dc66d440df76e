#include "cli/eval_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <limits>

namespace dunlin::cli {

CLI::App& add_eval_command(CLI::App& eval, const char* name, const char* help, EvalFlags& flags) {
  constexpr int kUsualSeqs = 8;  // texts are long; more at once brings nothing
  CLI::App& command = *eval.add_subcommand(name, help);
  flags.session.session.engine.max_seqs = kUsualSeqs;
  add_session_flags(command, flags.session);
  command.add_flag("-q,--quiet", flags.session.fetch.quiet, "No progress bar");
  command.add_option("-o,--output", flags.output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  return command;
}

void set_chunk_option(CLI::App& command, EngineConfig& engine) {
  constexpr int kUsualChunk = 512, kShortestChunk = 4;
  engine.max_context = kUsualChunk;
  CLI::Option& option = *command.get_option("--context");
  command.remove_option(&option);
  command.add_option("-c,--context", engine.max_context, "Tokens of a chunk")
      ->check(CLI::Range(kShortestChunk, std::numeric_limits<int>::max()))
      ->capture_default_str();
}

void add_list(CLI::App& command, const char* name, std::vector<int>& values, const char* help,
              int least, int most) {
  command.add_option(name, values, help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(least, most))
      ->capture_default_str();
}

Result<std::string> read_text(const std::string& path) {
  constexpr std::size_t kMaxTextBytes = std::size_t{256} << 20;
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  std::istream& in = path == "-" ? std::cin : file;
  std::string text, part(1 << 20, '\0');
  while (in.read(part.data(), static_cast<std::streamsize>(part.size())) || in.gcount() > 0) {
    text.append(part, 0, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxTextBytes)
      return invalid(fmt::format("{} is longer than 256 MiB; give a part of it", path));
  }
  if (path != "-" && (!file.is_open() || file.bad()))
    return fail(StatusCode::kNotFound, fmt::format("can't read {}", path));
  return text;
}

Result<std::unique_ptr<Session>> open_for_eval(const SessionFlags& flags) {
  DUNLIN_ASSIGN(session, open_session(flags));
  if (session->is_encoder()) return invalid(encoder_refusal(*session));
  return session;
}

EvalBar::EvalBar(const char* label, const EvalFlags& flags)
    : bar_(label, flags.session.fetch.quiet || !ProgressBar::on_terminal()) {}

eval::Progress EvalBar::progress() {
  return [this](int done, int total) {
    bar_.update_fraction(static_cast<double>(done) / total, fmt::format("{} of {}", done, total));
  };
}

}  // namespace dunlin::cli
