#include "chat/chat_commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/quote.h"
#include "base/write_all.h"

namespace dunlin::chat {
namespace {

constexpr const char* kHelp =
    "  /reset           forget the conversation\n"
    "  /system TEXT     set the system message; alone it shows it\n"
    "  /system default  take the template's own again\n"
    "  /save FILE       write the conversation as JSON, never over an existing file\n"
    "  /verbose         times and counts after each answer, on or off\n"
    "  /bye             leave; so does Ctrl-D\n"
    "\n"
    "  Ctrl-C           stop the answer; what it said stays in the conversation\n"
    "  Alt-Enter        a new line in the message; so is \\ and Enter\n"
    "  \"\"\"              begins and ends a message of several lines\n"
    "  Up, Down         earlier messages";

std::string expand_home(const std::string& path) {
  const char* home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

Result<std::string> save(const Conversation& conversation, const std::string& name) {
  if (name.empty()) return invalid("/save needs a file name");
  const std::string path = expand_home(name);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0 && errno == EEXIST)
    return fail(StatusCode::kAlreadyExists,
                fmt::format("{} exists already; choose another name", quote_for_message(path)));
  if (fd < 0)
    return fail(StatusCode::kPermissionDenied,
                fmt::format("can't create {}: {}", quote_for_message(path), std::strerror(errno)));
  bool whole = write_all(fd, conversation.to_json());
  int error = errno;
  if (close(fd) != 0 && whole) {
    whole = false;
    error = errno;
  }
  if (whole) return fmt::format("saved in {}", path);
  unlink(path.c_str());  // it is ours, and worth nothing
  return fail(StatusCode::kResourceExhausted,
              fmt::format("can't write {}: {}", quote_for_message(path), std::strerror(error)));
}

Result<std::string> system_message(const std::string& text, ChatState& state) {
  if (!state.has_roles)
    return invalid("a base model has no system message; it continues the text as it is");
  if (text.empty())
    return state.conversation.system().empty() ? "the system message is the template's own"
                                               : state.conversation.system();
  const bool own = text == "default";
  state.conversation.set_system(own ? "" : text);
  return fmt::format(
      "{}{}", own ? "the system message is the template's own again" : "the system message is set",
      state.conversation.num_turns() > 0 ? "; /reset starts a new conversation" : "");
}

}  // namespace

Result<std::string> run_chat_command(const std::string& line, ChatState& state) {
  constexpr const char* kSpaces = " \t\n";
  const std::size_t end = std::min(line.find_first_of(kSpaces), line.size());
  const std::size_t begin = std::min(line.find_first_not_of(kSpaces, end), line.size());
  const std::string name = line.substr(0, end);
  std::string argument = line.substr(begin);
  argument.erase(argument.find_last_not_of(kSpaces) + 1);
  if (name == "/help" || name == "/?") return kHelp;
  if (name == "/system") return system_message(argument, state);
  if (name == "/save") return save(state.conversation, argument);
  if (name == "/reset") {
    state.conversation.reset();
    return "a new conversation";
  }
  if (name == "/verbose") {
    state.verbose = !state.verbose;
    return state.verbose ? "verbose is on" : "verbose is off";
  }
  if (name == "/bye" || name == "/exit" || name == "/quit") {
    state.leaving = true;
    return "";
  }
  return invalid(fmt::format(
      "there is no {}; /help lists the commands, and a space first sends it as a message",
      quote_for_message(name, 40)));
}

}  // namespace dunlin::chat
