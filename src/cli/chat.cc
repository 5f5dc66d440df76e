#include "cli/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "chat/answer.h"
#include "chat/chat_commands.h"
#include "chat/conversation.h"
#include "cli/commands.h"
#include "terminal/prompt.h"
#include "terminal/signal_pipe.h"

namespace dunlin::cli {
namespace {

using namespace dunlin::chat;

constexpr int kAnswerReserve = 256;  // tokens of the context that a chat keeps for the next answer
constexpr int kInterruptedCode = 128 + SIGINT;

void say_if_base_model(const Session& session, const ChatOptions& options) {
  if (session.has_chat_template()) return;
  note(fmt::format("{} is a base model (no chat template): it continues your text{}",
                   session.config().model_name,
                   options.system.empty() ? "" : "; --system has no effect"));
}

// $DUNLIN_HISTORY, where "" is none, else a file of the user's state folder.
std::string history_path() {
  if (const char* path = std::getenv("DUNLIN_HISTORY")) return path;
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/dunlin/history";
  const char* home = std::getenv("HOME");
  return home == nullptr || *home == '\0' ? "" : std::string(home) + "/.local/state/dunlin/history";
}

class Chat {
 public:
  Chat(Session& session, ChatOptions options)
      : session_(session),
        options_(std::move(options)),
        state_{Conversation(options_.system), options_.verbose, session.has_chat_template()},
        prompt_(terminal::open_prompt(history_path())) {}

  int run() {
    note(fmt::format("{}: /help tells more, Ctrl-D leaves", session_.config().model_name));
    say_if_base_model(session_, options_);
    if (const std::string problem = prompt_->problem(); !problem.empty()) note(problem);
    while (!state_.leaving) {
      const terminal::PromptInput input = prompt_->read();
      switch (input.kind) {
        case terminal::PromptInput::Kind::kEnd: return exit_code_;
        case terminal::PromptInput::Kind::kInterrupt: note("Ctrl-D or /bye leaves"); break;
        case terminal::PromptInput::Kind::kMessage: take_message(input.text);
      }
    }
    return exit_code_;
  }

 private:
  void take_message(const std::string& text) {
    if (text.find_first_not_of(" \t\n") == std::string::npos) return;
    if (!text.starts_with('/')) return take_turn(text);
    const auto said = run_chat_command(text, state_);
    if (!said) {
      report(said.error());
    } else if (!said->empty()) {
      note(*said);
    }
  }

  void take_turn(const std::string& text) {
    auto prompt = state_.conversation.ask(session_, text, reserve());
    if (!prompt) {
      report(prompt.error());
      return;
    }
    if (const int dropped = prompt->num_dropped_turns; dropped > 0)
      note(fmt::format("the conversation outgrew the context: the oldest {} dropped",
                       dropped == 1 ? "turn is" : fmt::format("{} turns are", dropped)));
    auto answer = stream_answer(session_, std::move(prompt->ids), options_.generation,
                                [this] { return prompt_->interrupted(); });
    if (!answer) {
      state_.conversation.forget_question();
      leave_if(answer.error().code() == StatusCode::kUnavailable, report(answer.error()));
      return;
    }
    if (answer->write_error != 0) {
      leave_if(true, report_write_error(answer->write_error));
      return;
    }
    say_how_it_ended(*answer);
    std::fputs("\n", stderr);
    if (answer->text.empty() && answer->finish == FinishReason::kCancelled) {
      state_.conversation.forget_question();
    } else {
      state_.conversation.answered(std::move(answer->text), std::move(answer->tokens));
    }
  }

  void say_how_it_ended(const Answer& answer) {
    if (answer.finish == FinishReason::kCancelled)
      note(answer.text.empty() ? "stopped before the answer began; the message is forgotten"
                               : "stopped; what was said stays in the conversation");
    if (answer.finish == FinishReason::kLength)
      note(answer.stats.num_output_tokens == options_.generation.sampling.max_tokens
               ? "cut at --max-tokens"
               : "cut: the context is full");
    if (state_.verbose) note(describe_stats(answer.stats));
  }

  int reserve() const {
    const int wanted = options_.generation.sampling.max_tokens;
    return std::min(wanted > 0 ? wanted : kAnswerReserve, session_.context_length() / 2);
  }

  void leave_if(bool leaving, int exit_code) {
    if (!leaving) return;
    state_.leaving = true;
    exit_code_ = exit_code;
  }

  Session& session_;
  const ChatOptions options_;
  ChatState state_;
  std::unique_ptr<terminal::Prompt> prompt_;
  int exit_code_ = 0;
};

}  // namespace

int answer_once(Session& session, const std::string& prompt, const ChatOptions& options) {
  say_if_base_model(session, options);
  Conversation conversation(options.system);
  auto ids = conversation.ask(session, prompt, 1);
  if (!ids) return report(ids.error());
  terminal::SignalPipe signals({SIGINT});
  const auto answer = stream_answer(session, std::move(ids->ids), options.generation,
                                    [&signals] { return signals.take().has_value(); });
  if (!answer) return report(answer.error());
  if (answer->write_error != 0) return report_write_error(answer->write_error);
  if (options.verbose) note(describe_stats(answer->stats));
  return answer->finish == FinishReason::kCancelled ? kInterruptedCode : 0;
}

int chat(Session& session, ChatOptions options) { return Chat(session, std::move(options)).run(); }

}  // namespace dunlin::cli
