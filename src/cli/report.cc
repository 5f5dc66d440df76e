#include <unistd.h>

#include <cstdio>

#include "cli/commands.h"
#include "terminal/printable.h"
#include "terminal/style.h"

namespace dunlin::cli {
namespace {

// What a file or a template says must not steer the terminal.
std::string for_stderr(const std::string& text) {
  return isatty(STDERR_FILENO) != 0 ? terminal::printable(text) : text;
}

}  // namespace

int report(const Status& status) {
  std::fprintf(stderr, "%s %s\n", terminal::red("dunlin:", STDERR_FILENO).c_str(),
               for_stderr(status.message()).c_str());
  return 1;
}

void note(const std::string& text) {
  const bool one_line = text.find('\n') == std::string::npos;
  const std::string shown = for_stderr(one_line ? "(" + text + ")" : text);
  std::fprintf(stderr, "%s\n", terminal::dim(shown, STDERR_FILENO).c_str());
}

}  // namespace dunlin::cli
