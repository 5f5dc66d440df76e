#include "terminal/multi_line.h"

namespace dunlin::terminal {
namespace {

constexpr std::string_view kMark = "\"\"\"";

bool is_closed_block(std::string_view text) {
  while (text.ends_with('\n') || text.ends_with(' ')) text.remove_suffix(1);
  return text.size() >= 2 * kMark.size() && text.ends_with(kMark);
}

}  // namespace

Continuation continuation(std::string_view text) {
  if (text.starts_with(kMark))
    return is_closed_block(text) ? Continuation::kNone : Continuation::kBlock;
  return text.ends_with('\\') ? Continuation::kBackslash : Continuation::kNone;
}

std::string message_of(std::string_view text) {
  if (text.starts_with(kMark)) {
    text.remove_prefix(kMark.size());
    if (const std::size_t end = text.rfind(kMark); end != std::string_view::npos)
      text = text.substr(0, end);
    if (text.starts_with('\n')) text.remove_prefix(1);
  }
  while (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace dunlin::terminal
