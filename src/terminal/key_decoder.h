// The bytes of a terminal in raw mode to keys. Sequences and characters may be cut anywhere.
// Unknown sequences are passed over; of a paste, kMaxPasteBytes are kept.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "terminal/key.h"

namespace dunlin::terminal {

class KeyDecoder {
 public:
  static constexpr std::size_t kMaxPasteBytes = (1 << 20) + 1;

  std::vector<Key> push(std::string_view bytes);

  // True inside a sequence. A terminal sends one in one go: where nothing follows for a while,
  // abandon() (the Esc key has no meaning of its own). A paste may take as long as it likes; Ctrl-C
  // ends one that has no end.
  bool pending() const { return !pasting_ && pending_.starts_with('\x1b'); }
  void abandon() { pending_.clear(); }

 private:
  // Each takes the first thing from pending_ into `keys`; false where it is not whole yet.
  bool take(std::vector<Key>& keys);
  bool take_paste(std::vector<Key>& keys);
  bool take_escape(std::vector<Key>& keys);
  bool take_sequence(std::vector<Key>& keys);
  bool take_text(std::vector<Key>& keys);
  void end_paste(std::vector<Key>& keys);

  std::string pending_;
  std::string paste_;
  bool pasting_ = false;
};

}  // namespace dunlin::terminal
