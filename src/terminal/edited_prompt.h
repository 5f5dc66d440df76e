// The prompt of a terminal that can move its cursor.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "terminal/history.h"
#include "terminal/key_decoder.h"
#include "terminal/line_editor.h"
#include "terminal/painter.h"
#include "terminal/prompt.h"
#include "terminal/raw_mode.h"
#include "terminal/signal_pipe.h"

namespace dunlin::terminal {

class EditedPrompt final : public Prompt {
 public:
  EditedPrompt(int screen_fd, const std::string& history_path);

  PromptInput read() override;
  bool interrupted() override;
  std::string problem() const override { return history_.problem(); }

 private:
  void wait_for_keys();
  bool read_keys(int timeout_ms);  // false where none came in time
  void take_signals();
  // What a key leads to: an input for the caller, or nothing yet.
  std::optional<PromptInput> press(const Key& key);
  void suspend();
  void say_too_long();

  Layout layout(std::size_t cursor) const;
  void paint();
  void finish();  // leaves what is typed on the screen and goes below it

  SignalPipe signals_;
  RawMode terminal_;
  History history_;
  LineEditor editor_;
  KeyDecoder decoder_;
  Painter painter_;
  std::deque<Key> keys_;  // typed and not yet used
  bool ended_ = false;    // the terminal is gone
};

}  // namespace dunlin::terminal
