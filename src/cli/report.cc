#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "cli/commands.h"
#include "terminal/printable.h"
#include "terminal/style.h"

namespace dunlin::cli {
namespace {

// What a file or a template says must not steer the terminal.
std::string for_stderr(const std::string& text) {
  return isatty(STDERR_FILENO) != 0 ? terminal::printable(text) : text;
}

bool is_reader_gone() {
  pollfd descriptor{STDOUT_FILENO, 0, 0};
  return poll(&descriptor, 1, 0) > 0 && (descriptor.revents & POLLERR) != 0;
}

}  // namespace

int report(const Status& status) {
  std::fprintf(stderr, "%s %s\n", terminal::red("dunlin:", STDERR_FILENO).c_str(),
               for_stderr(status.message()).c_str());
  return 1;
}

int exit_code(const Outcome& outcome) { return outcome ? 0 : report(outcome.error()); }
int exit_code(const Result<int>& code) { return code ? *code : report(code.error()); }

int report_write_error(int error) {
  constexpr int kClosedOutputCode = 128 + SIGPIPE;  // as of a program that the signal ends
  // The reader has had enough.
  if (error == EPIPE || (error == 0 && is_reader_gone())) return kClosedOutputCode;
  std::string message = "can't write to standard output";
  if (error != 0) message += std::string(": ") + std::strerror(error);
  return report(Status(StatusCode::kResourceExhausted, message));
}

Outcome write_asked_file(std::string_view flag, const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (file) return {};
  return fail(StatusCode::kPermissionDenied, fmt::format("{}: can't write {}", flag, path));
}

void note(const std::string& text) {
  const bool one_line = text.find('\n') == std::string::npos;
  const std::string shown = for_stderr(one_line ? "(" + text + ")" : text);
  std::fprintf(stderr, "%s\n", terminal::dim(shown, STDERR_FILENO).c_str());
}

}  // namespace dunlin::cli
