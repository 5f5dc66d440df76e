// Keys to a message: edits, and walks through the history. Knows nothing of the screen.
#pragma once

#include <string>
#include <vector>

#include "terminal/edit_buffer.h"
#include "terminal/key.h"

namespace dunlin::terminal {

class LineEditor {
 public:
  static constexpr std::size_t kMaxBytes = 1 << 20;  // of a message

  // What a key asks of the one who reads.
  enum class Action {
    kNone,       // show the buffer
    kSend,       // Enter: the buffer is a whole message
    kInterrupt,  // Ctrl-C with an empty buffer; else it empties the buffer
    kEnd,        // Ctrl-D with an empty buffer
    kClearScreen,
    kSuspend,
    kTooLong,  // the key's text would make the message too long: it is not taken
  };

  // `history`, oldest first, must outlive the editor.
  explicit LineEditor(const std::vector<std::string>& history) : history_(history) {}

  Action press(const Key& key);
  const EditBuffer& buffer() const { return buffer_; }
  void begin();  // an empty buffer, behind the newest entry of the history

 private:
  Action insert(std::string_view text);
  Action enter();
  Action interrupt();
  void edit(KeyKind kind);
  void previous();
  void next();

  const std::vector<std::string>& history_;
  EditBuffer buffer_;
  std::size_t entry_ = 0;  // history_.size(): what is being typed
  std::string draft_;      // that, while an entry is shown
};

}  // namespace dunlin::terminal
