#include "text/hf_charsmap.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/base64.h"
#include "base/utf8.h"
#include "text/normalized_writer.h"

namespace dunlin::hf {
namespace {

std::uint32_t read_u32(std::string_view bytes, std::size_t pos) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[pos + static_cast<std::size_t>(i)]);
  }
  return value;
}

// A unit of the trie.
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7FFFFFFF; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FF; }
std::uint32_t offset_of(std::uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

}  // namespace

Result<Charsmap> Charsmap::make(std::string_view encoded) {
  const auto blob = decode_base64(encoded);
  if (!blob) return invalid("is not base64");
  if (blob->size() < 8) return invalid("is too short for a trie");
  const std::uint32_t trie_size = read_u32(*blob, 0);
  if (trie_size % 4 != 0 || trie_size == 0 || trie_size > blob->size() - 4) {
    return invalid(fmt::format("has a trie of {} bytes in {}", trie_size, blob->size()));
  }
  std::vector<std::uint32_t> trie;
  trie.reserve(trie_size / 4);
  for (std::size_t pos = 4; pos < 4 + trie_size; pos += 4) trie.push_back(read_u32(*blob, pos));
  std::string replacements = blob->substr(4 + trie_size);
  if (find_broken_utf8(replacements) != replacements.size()) {
    return invalid("has replacements that are not UTF-8");
  }
  return Charsmap(std::move(trie), std::move(replacements));
}

// A key has a byte at least.
std::size_t Charsmap::growth() const {
  std::size_t longest = 1;
  for (std::size_t begin = 0; begin < replacements_.size();) {
    const std::size_t end = std::min(replacements_.find('\0', begin), replacements_.size());
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return longest;
}

std::optional<std::string_view> Charsmap::find(std::string_view key) const {
  std::size_t node = offset_of(trie_[0]);
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    node ^= byte;
    if (byte == 0 || node >= trie_.size() || label_of(trie_[node]) != byte) return std::nullopt;
    const std::uint32_t unit = trie_[node];
    node ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (node >= trie_.size() || value_of(trie_[node]) >= replacements_.size()) return std::nullopt;
    const auto found = std::string_view(replacements_).substr(value_of(trie_[node]));
    const auto replacement = found.substr(0, found.find('\0'));
    // Inside a character: a map that is broken.
    if (find_broken_utf8(replacement) != replacement.size()) return std::nullopt;
    return replacement;
  }
  return std::nullopt;
}

void Charsmap::apply(NormalizedText& text, ByteRegex::Scratch&) const {
  NormalizedWriter writer(text);
  const std::string_view source = writer.source();
  const auto length_at = [&](std::size_t pos) {
    return static_cast<std::size_t>(utf8_length(static_cast<unsigned char>(source[pos])));
  };
  for (std::size_t begin = 0; begin < source.size();) {
    int state = 0;
    std::size_t end = begin + length_at(begin);
    char32_t last = decode_valid_utf8(source.data() + begin);
    while (end < source.size()) {
      const char32_t next = decode_valid_utf8(source.data() + end);
      const bool both_ascii = last < 0x80 && next < 0x80;
      if (both_ascii ? last != '\r' || next != '\n'
                     : utf8proc_grapheme_break_stateful(static_cast<int>(last),
                                                        static_cast<int>(next), &state)) {
        break;
      }
      last = next;
      end += length_at(end);
    }
    const auto whole = end - begin < 6 ? find(source.substr(begin, end - begin)) : std::nullopt;
    if (whole) {
      writer.copy_until(begin);
      writer.replace_until(end, *whole);
    }
    for (std::size_t pos = begin; !whole && pos < end;) {
      const std::size_t next = pos + length_at(pos);
      if (const auto one = find(source.substr(pos, next - pos))) {
        writer.copy_until(pos);
        writer.replace_until(next, *one);
      }
      pos = next;
    }
    begin = end;
  }
  writer.finish();
}

}  // namespace dunlin::hf
