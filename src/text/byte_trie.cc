#include "text/byte_trie.h"

#include <algorithm>

namespace dunlin {

ByteTrie::ByteTrie(std::vector<std::pair<std::string_view, Value>> texts) {
  std::sort(texts.begin(), texts.end());
  // A node is a range of texts with a common beginning of `depth` bytes.
  struct Pending {
    std::uint32_t begin;
    std::uint32_t end;
    std::uint32_t depth;
  };
  std::vector<Pending> nodes = {{0, static_cast<std::uint32_t>(texts.size()), 0}};
  labels_.push_back(0);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Pending node = nodes[i];
    first_child_.push_back(static_cast<std::uint32_t>(nodes.size()));
    const bool ends_here = node.begin < node.end && texts[node.begin].first.size() == node.depth;
    values_.push_back(ends_here ? texts[node.begin].second : -1);
    if (ends_here) ++node.begin;
    while (node.begin < node.end) {
      const char label = texts[node.begin].first[node.depth];
      std::uint32_t end = node.begin + 1;
      while (end < node.end && texts[end].first[node.depth] == label) ++end;
      if (i == 0) {
        root_children_[static_cast<unsigned char>(label)] =
            static_cast<std::uint32_t>(nodes.size());
      }
      labels_.push_back(static_cast<std::uint8_t>(label));
      nodes.push_back({node.begin, end, node.depth + 1});
      node.begin = end;
    }
  }
  first_child_.push_back(static_cast<std::uint32_t>(nodes.size()));
}

}  // namespace dunlin
