#include "terminal/key_decoder.h"

#include <algorithm>
#include <optional>

#include "base/utf8.h"
#include "terminal/printable.h"

namespace dunlin::terminal {
namespace {

constexpr char kEscape = '\x1b';
constexpr char kControlC = '\x03';
constexpr std::string_view kPasteEnd = "\x1b[201~";
constexpr std::size_t kMaxSequence = 32;  // bytes; longer ones are not of a keyboard

struct Binding {
  std::string_view bytes;
  KeyKind kind;
};

constexpr Binding kControls[] = {
    {"\r", KeyKind::kEnter},           {"\n", KeyKind::kNewLine},
    {"\x01", KeyKind::kHome},          {"\x02", KeyKind::kLeft},
    {"\x03", KeyKind::kInterrupt},     {"\x04", KeyKind::kEndOfInput},
    {"\x05", KeyKind::kEnd},           {"\x06", KeyKind::kRight},
    {"\x08", KeyKind::kBackspace},     {"\x0b", KeyKind::kEraseToEnd},
    {"\x0c", KeyKind::kClearScreen},   {"\x0e", KeyKind::kNext},
    {"\x10", KeyKind::kPrevious},      {"\x15", KeyKind::kEraseToStart},
    {"\x17", KeyKind::kEraseWordLeft}, {"\x19", KeyKind::kYank},
    {"\x1a", KeyKind::kSuspend},       {"\x7f", KeyKind::kBackspace},
};

// After ESC: what Alt makes of a key.
constexpr Binding kAlts[] = {
    {"\r", KeyKind::kNewLine},         {"\n", KeyKind::kNewLine},
    {"b", KeyKind::kWordLeft},         {"f", KeyKind::kWordRight},
    {"d", KeyKind::kEraseWordRight},   {"\x7f", KeyKind::kEraseWordLeft},
    {"\x08", KeyKind::kEraseWordLeft},
};

// After ESC [ or ESC O.
constexpr Binding kSequences[] = {
    {"A", KeyKind::kUp},          {"B", KeyKind::kDown},           {"C", KeyKind::kRight},
    {"D", KeyKind::kLeft},        {"H", KeyKind::kHome},           {"F", KeyKind::kEnd},
    {"1~", KeyKind::kHome},       {"7~", KeyKind::kHome},          {"4~", KeyKind::kEnd},
    {"8~", KeyKind::kEnd},        {"3~", KeyKind::kDelete},        {"1;5C", KeyKind::kWordRight},
    {"1;5D", KeyKind::kWordLeft}, {"1;3C", KeyKind::kWordRight},   {"1;3D", KeyKind::kWordLeft},
    {"13;2u", KeyKind::kNewLine}, {"27;2;13~", KeyKind::kNewLine},
};

template <std::size_t kSize>
std::optional<KeyKind> find(const Binding (&bindings)[kSize], std::string_view bytes) {
  for (const Binding& binding : bindings) {
    if (binding.bytes == bytes) return binding.kind;
  }
  return std::nullopt;
}

bool is_control(char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == '\x7f'; }

}  // namespace

std::vector<Key> KeyDecoder::push(std::string_view bytes) {
  pending_ += bytes;
  std::vector<Key> keys;
  while (!pending_.empty() && take(keys)) {
  }
  return keys;
}

bool KeyDecoder::take(std::vector<Key>& keys) {
  if (pasting_) return take_paste(keys);
  if (pending_[0] == kEscape) return take_escape(keys);
  if (!is_control(pending_[0]) || pending_[0] == '\t') return take_text(keys);
  if (const auto kind = find(kControls, std::string_view(pending_).substr(0, 1)))
    keys.push_back({*kind, ""});
  pending_.erase(0, 1);
  return true;
}

bool KeyDecoder::take_paste(std::vector<Key>& keys) {
  const std::size_t end = pending_.find(kPasteEnd);
  const std::size_t interrupt = pending_.find(kControlC);
  std::size_t size = std::min({end, interrupt, pending_.size()});
  if (size == pending_.size()) {  // no end yet: its beginning may be there
    std::size_t kept = std::min(kPasteEnd.size() - 1, size);
    while (kept > 0 && !pending_.ends_with(kPasteEnd.substr(0, kept))) --kept;
    size -= kept;
  }
  paste_.append(pending_, 0, std::min(size, kMaxPasteBytes - paste_.size()));
  pending_.erase(0, size);
  if (interrupt < end) {
    pasting_ = false;
    paste_.clear();
  } else if (end != std::string::npos) {
    pending_.erase(0, kPasteEnd.size());
    end_paste(keys);
  } else {
    return false;
  }
  return true;
}

void KeyDecoder::end_paste(std::vector<Key>& keys) {
  pasting_ = false;
  keys.push_back({KeyKind::kPaste, typed_text(paste_)});
  paste_.clear();
}

bool KeyDecoder::take_escape(std::vector<Key>& keys) {
  if (pending_.size() == 1) return false;
  if (pending_[1] == '[' || pending_[1] == 'O') return take_sequence(keys);
  if (pending_[1] == kEscape) {
    pending_.erase(0, 1);
    return true;
  }
  const Utf8Char character = decode_utf8(pending_, 1);
  if (character.state == Utf8State::kIncomplete) return false;
  if (const auto kind = find(kAlts, std::string_view(pending_).substr(1, 1)))
    keys.push_back({*kind, ""});
  pending_.erase(0, 1 + static_cast<std::size_t>(character.num_bytes));
  return true;
}

// ECMA-48, 5.4: parameters, then a final byte of 0x40 to 0x7E.
bool KeyDecoder::take_sequence(std::vector<Key>& keys) {
  const std::size_t limit = std::min(pending_.size(), kMaxSequence);
  std::size_t size = 2;
  while (size < limit && pending_[size] >= 0x20 && pending_[size] < 0x40) ++size;
  if (size == kMaxSequence) {
    pending_.erase(0, size);
    return true;
  }
  if (size == pending_.size()) return false;
  const std::string_view name = std::string_view(pending_).substr(2, size - 1);
  if (name == "200~") {
    pasting_ = true;
  } else if (const auto kind = find(kSequences, name)) {
    keys.push_back({*kind, ""});
  }
  const bool ended = pending_[size] >= 0x40 && pending_[size] < 0x7f;
  pending_.erase(0, size + (ended ? 1 : 0));  // another byte is not part of it
  return true;
}

bool KeyDecoder::take_text(std::vector<Key>& keys) {
  std::size_t size = 0;
  while (size < pending_.size() && (!is_control(pending_[size]) || pending_[size] == '\t')) {
    const Utf8Char next = decode_utf8(pending_, size);
    if (next.state == Utf8State::kIncomplete) break;
    size += static_cast<std::size_t>(next.num_bytes);
  }
  if (size == 0) return false;
  std::string text = typed_text(std::string_view(pending_).substr(0, size));
  pending_.erase(0, size);
  if (!text.empty()) keys.push_back({KeyKind::kText, std::move(text)});
  return true;
}

}  // namespace dunlin::terminal
