// Any bytes as what a terminal sends, whole and cut in two: the keys are the same, their text is
// valid and harmless, and the editor's buffer stays so.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "terminal/key_decoder.h"
#include "terminal/line_editor.h"
#include "terminal/printable.h"

namespace dunlin::terminal {
namespace {

void check_text(const std::string& text) {
  DUNLIN_CHECK(find_broken_utf8(text) == text.size(), "broken UTF-8 came through");
  DUNLIN_CHECK(text == typed_text(text), "a control character came through");
}

bool equal(const Key& a, const Key& b) { return a.kind == b.kind && a.text == b.text; }

// Neighbouring pieces of text are one: where the bytes were cut doesn't show.
void append(std::vector<Key>& keys, std::vector<Key> more) {
  for (Key& key : more) {
    if (key.kind == KeyKind::kText && !keys.empty() && keys.back().kind == KeyKind::kText) {
      keys.back().text += key.text;
    } else {
      keys.push_back(std::move(key));
    }
  }
}

void run(std::string_view bytes) {
  const std::size_t cut = bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]) % bytes.size();
  KeyDecoder whole, parts;
  std::vector<Key> keys, same;
  append(keys, whole.push(bytes));
  append(same, parts.push(bytes.substr(0, cut)));
  append(same, parts.push(bytes.substr(cut)));
  DUNLIN_CHECK(keys.size() == same.size(), "a cut changed the keys");
  const std::vector<std::string> history = {"before", "two\nlines"};
  LineEditor editor(history);
  editor.begin();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    DUNLIN_CHECK(equal(keys[i], same[i]), "a cut changed a key");
    check_text(keys[i].text);
    if (editor.press(keys[i]) == LineEditor::Action::kSend) editor.begin();
    check_text(editor.buffer().text());
    DUNLIN_CHECK(editor.buffer().cursor() <= editor.buffer().text().size(), "the cursor ran away");
  }
  const std::string shown = printable(bytes);
  DUNLIN_CHECK(find_broken_utf8(shown) == shown.size(), "broken UTF-8 was shown");
  DUNLIN_CHECK(shown.find('\x1b') == std::string::npos, "an escape was shown");
}

}  // namespace
}  // namespace dunlin::terminal

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  dunlin::terminal::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
