// A trie over bytes that finds all texts which begin a given one: nodes in order of breadth, the
// children of each side by side and sorted.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace dunlin {

class ByteTrie {
 public:
  using Value = std::int32_t;  // not negative
  // Texts must be distinct and not empty.
  explicit ByteTrie(std::vector<std::pair<std::string_view, Value>> texts);

  // Calls f(length, value) for each text that `text` begins with, the shortest first.
  template <typename F>
  void for_each_prefix(std::string_view text, const F& f) const {
    std::uint32_t node = 0;
    for (std::size_t length = 1; length <= text.size(); ++length) {
      node = child(node, static_cast<unsigned char>(text[length - 1]));
      if (node == 0) return;
      if (values_[node] >= 0) f(length, values_[node]);
    }
  }

 private:
  // 0 where there is none: the root is nobody's child.
  std::uint32_t child(std::uint32_t node, unsigned char byte) const {
    if (node == 0) return root_children_[byte];
    std::uint32_t low = first_child_[node], high = first_child_[node + 1];
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (labels_[middle] < byte) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < first_child_[node + 1] && labels_[low] == byte ? low : 0;
  }

  std::vector<std::uint32_t> first_child_;  // [num_nodes + 1] children end where the next begin
  std::vector<std::uint8_t> labels_;        // [num_nodes]
  std::vector<Value> values_;               // [num_nodes] -1: no text ends here
  std::array<std::uint32_t, 256> root_children_{};
};

}  // namespace dunlin
