#include "cli/chat.h"

#include <editline/readline.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "cli/commands.h"
#include "cli/conversation.h"

namespace dunlin::cli {
namespace {

// Set by Ctrl-C; the answer loop looks at it. A signal handler can reach nothing else.
std::atomic<bool> g_interrupted{false};

// Ctrl-C while in scope stops the answer, not the program.
class InterruptScope {
 public:
  InterruptScope() {
    g_interrupted = false;
    struct sigaction action{};
    action.sa_handler = [](int) { g_interrupted = true; };
    sigaction(SIGINT, &action, &previous_);
  }
  ~InterruptScope() { sigaction(SIGINT, &previous_, nullptr); }
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  struct sigaction previous_{};
};

struct Answer {
  std::string text;
  FinishReason finish = FinishReason::kNone;
  RequestStats stats;
};

// Streams to stdout until the end or Ctrl-C.
Result<Answer> stream_answer(Session& session, std::vector<TokenId> prompt,
                             GenerationOptions options) {
  const int room = session.context_length() - static_cast<int>(prompt.size());
  if (options.sampling.max_tokens <= 0 || options.sampling.max_tokens > room)
    options.sampling.max_tokens = std::max(room, 1);
  DUNLIN_ASSIGN(generation, session.generate(std::move(prompt), options));
  Answer answer;
  const InterruptScope interrupts;
  bool cancelled = false;
  while (!generation->finished()) {
    if (g_interrupted && !cancelled) {
      generation->cancel();
      cancelled = true;
    }
    const auto delta = generation->wait(std::chrono::milliseconds(50));
    if (!delta) continue;
    if (delta->error) return tl::unexpected(*delta->error);
    std::fwrite(delta->text.data(), 1, delta->text.size(), stdout);
    std::fflush(stdout);
    answer.text += delta->text;
    if (delta->finish != FinishReason::kNone) {
      answer.finish = delta->finish;
      answer.stats = delta->stats;
    }
  }
  if (!answer.text.ends_with('\n')) std::puts("");
  return answer;
}

void print_stats(const RequestStats& stats, FinishReason finish) {
  const double decode_s = stats.total_time_s - stats.first_token_time_s;
  fmt::print(
      stderr,
      "prompt {} tokens ({} cached), answer {} tokens, first token after {:.0f} ms, {:.1f} "
      "tokens/s, {:.2f} s, ended by {}\n",
      stats.num_prompt_tokens, stats.num_cached_tokens, stats.num_output_tokens,
      stats.first_token_time_s * 1e3,
      stats.num_output_tokens > 1 && decode_s > 0 ? (stats.num_output_tokens - 1) / decode_s : 0.0,
      stats.total_time_s, finish_reason_name(finish));
}

void say_if_base_model(const Session& session) {
  if (!session.has_chat_template())
    fmt::print(stderr,
               "dunlin: {} has no chat template (a base model): the text is completed as it is\n",
               session.config().model_name);
}

constexpr int kAnswerReserve = 256;  // tokens of the context that a chat keeps for the next answer

// One turn: false where the chat can't go on.
bool take_turn(Session& session, Conversation& conversation, const std::string& text,
               const ChatOptions& options) {
  const int reserve =
      std::min(options.generation.sampling.max_tokens > 0 ? options.generation.sampling.max_tokens
                                                          : kAnswerReserve,
               session.context_length() / 2);
  auto prompt = conversation.ask(session, text, reserve);
  if (!prompt) {
    report(prompt.error());
    return true;
  }
  if (prompt->num_dropped_turns > 0)
    fmt::print(stderr, "(the conversation outgrew the context: the oldest {} turn{} dropped)\n",
               prompt->num_dropped_turns, prompt->num_dropped_turns == 1 ? " was" : "s were");
  auto answer = stream_answer(session, std::move(prompt->ids), options.generation);
  if (!answer) {
    conversation.forget_question();
    report(answer.error());
    return answer.error().code() != StatusCode::kUnavailable;
  }
  conversation.answered(answer->text);
  if (answer->finish == FinishReason::kCancelled) fmt::print(stderr, "(stopped)\n");
  if (answer->finish == FinishReason::kLength) fmt::print(stderr, "(cut at the token limit)\n");
  if (options.verbose) print_stats(answer->stats, answer->finish);
  return true;
}

constexpr const char* kHelp =
    "/reset          forget the conversation\n"
    "/system TEXT    set the system message (and forget the conversation); without TEXT: show it\n"
    "/save FILE      write the conversation as JSON; an existing file is not overwritten\n"
    "/verbose        times and counts after each answer, on or off\n"
    "/bye            leave; so does Ctrl-D. Ctrl-C stops an answer\n"
    "A line that ends with \\ goes on in the next; \"\"\" begins and ends a text of several "
    "lines.\n";

void save(const Conversation& conversation, const std::string& path) {
  const int fd =
      path.empty() ? -1 : open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) {
    report(Status(StatusCode::kAlreadyExists,
                  path.empty() ? "/save needs a file name"
                               : fmt::format("can't create {}: {}", path, std::strerror(errno))));
    return;
  }
  const std::string text = conversation.to_json();
  const bool whole = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  if (whole) {
    fmt::print(stderr, "saved {}\n", path);
  } else {
    report(
        Status(StatusCode::kResourceExhausted, fmt::format("{} could not be written whole", path)));
  }
}

// Runs a /command; false for /bye.
bool run_command(const std::string& line, Conversation& conversation, ChatOptions& options) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string name = line.substr(0, space);
  const std::size_t begin = std::min(line.find_first_not_of(' ', space), line.size());
  const std::string argument = line.substr(begin);
  if (name == "/bye" || name == "/exit" || name == "/quit") return false;
  if (name == "/help" || name == "/?") {
    std::fputs(kHelp, stderr);
  } else if (name == "/reset") {
    conversation.reset();
    fmt::print(stderr, "(a new conversation)\n");
  } else if (name == "/system") {
    if (argument.empty()) {
      fmt::print(stderr, "{}\n",
                 conversation.system().empty() ? "(the template's own)" : conversation.system());
    } else {
      conversation.set_system(argument);
      conversation.reset();
      fmt::print(stderr, "(system message set; a new conversation)\n");
    }
  } else if (name == "/save") {
    save(conversation, argument);
  } else if (name == "/verbose") {
    options.verbose = !options.verbose;
    fmt::print(stderr, "(verbose {})\n", options.verbose ? "on" : "off");
  } else {
    fmt::print(stderr, "there is no {}; /help lists what there is\n", name);
  }
  return true;
}

// The edited line, or nullopt at the end of input. libedit owns the terminal meanwhile.
std::optional<std::string> edited_line(const char* prompt) {
  char* raw = readline(prompt);
  if (raw == nullptr) return std::nullopt;
  std::string line(raw);
  std::free(raw);
  return line;
}

// One message, of one or more lines.
std::optional<std::string> read_message() {
  auto first = edited_line(">>> ");
  if (!first) return std::nullopt;
  std::string text = *first;
  if (text.starts_with("\"\"\"")) {
    text.erase(0, 3);
    while (!text.ends_with("\"\"\"")) {
      const auto more = edited_line("... ");
      if (!more) break;
      text += "\n" + *more;
    }
    if (text.ends_with("\"\"\"")) text.erase(text.size() - 3);
  } else {
    while (text.ends_with('\\')) {
      text.pop_back();
      const auto more = edited_line("... ");
      if (!more) break;
      text += "\n" + *more;
    }
  }
  return text;
}

std::string history_path() {
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : std::string(home) + "/.cache/dunlin/history";
}

}  // namespace

int answer_once(Session& session, const std::string& prompt, const ChatOptions& options) {
  say_if_base_model(session);
  Conversation conversation(options.system);
  auto ids = conversation.ask(session, prompt, 1);
  if (!ids) return report(ids.error());
  const auto answer = stream_answer(session, std::move(ids->ids), options.generation);
  if (!answer) return report(answer.error());
  if (options.verbose) print_stats(answer->stats, answer->finish);
  return answer->finish == FinishReason::kCancelled ? 130 : 0;
}

int chat(Session& session, ChatOptions options) {
  say_if_base_model(session);
  fmt::print(stderr, "Chat with {}. /help tells more, Ctrl-D leaves.\n",
             session.config().model_name);
  Conversation conversation(options.system);
  const std::string history = history_path();
  using_history();
  stifle_history(1000);
  if (!history.empty()) read_history(history.c_str());
  std::signal(SIGINT, SIG_IGN);  // at the prompt Ctrl-C does nothing; Ctrl-D leaves
  for (bool going = true; going;) {
    const auto message = read_message();
    if (!message) break;
    if (message->find_first_not_of(" \t\n") == std::string::npos) continue;
    add_history(message->c_str());
    going = message->starts_with('/') ? run_command(*message, conversation, options)
                                      : take_turn(session, conversation, *message, options);
  }
  if (!history.empty()) write_history(history.c_str());
  return 0;
}

}  // namespace dunlin::cli
