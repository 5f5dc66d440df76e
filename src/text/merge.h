// Byte-pair merging: the adjacent pair of the lowest rank becomes one symbol, the leftmost first
// among equals, until no pair merges (Sennrich et al. 2016; Kudo & Richardson 2018 for merging by
// score). Short sequences by repeated search, long ones with a heap over a linked list:
// O(n log n).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "text/token_table.h"

namespace dunlin {

// A part of the text: a token, or a character without one (id -1).
struct MergeSymbol {
  TokenId id;
  std::uint32_t begin;  // bytes of the text
  std::uint32_t end;
};

// What one thread needs to merge; kept between pieces so that they allocate nothing.
struct MergeWorkspace {
  std::vector<MergeSymbol> symbols;  // in: the sequence; out: what is left of it

  std::vector<MergeTable::Merge> candidates;  // of symbol i with the next one
  std::vector<std::uint32_t> next;            // linked list over symbols; num_symbols: end
  std::vector<std::uint32_t> previous;
  std::vector<std::uint64_t> heap;  // rank << 32 | index of the left symbol; may be outdated
};

inline constexpr std::size_t kMaxShortMerge = 48;

// `find(left, right)` gives the MergeTable::Merge of two adjacent symbols.
template <typename Find>
void merge_short(MergeWorkspace& work, const Find& find) {
  std::vector<MergeSymbol>& symbols = work.symbols;
  auto& candidates = work.candidates;
  candidates.clear();
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
    candidates.push_back(find(symbols[i], symbols[i + 1]));
  }
  while (!candidates.empty()) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < candidates.size(); ++i) {
      if (candidates[i].rank < candidates[best].rank) best = i;
    }
    if (candidates[best].rank == MergeTable::kNone) break;
    symbols[best] = {candidates[best].id, symbols[best].begin, symbols[best + 1].end};
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(best));
    if (best > 0) candidates[best - 1] = find(symbols[best - 1], symbols[best]);
    if (best < candidates.size()) candidates[best] = find(symbols[best], symbols[best + 1]);
  }
}

template <typename Find>
void merge_long(MergeWorkspace& work, const Find& find) {
  std::vector<MergeSymbol>& symbols = work.symbols;
  const auto num_symbols = static_cast<std::uint32_t>(symbols.size());
  work.candidates.assign(num_symbols, {MergeTable::kNone, -1});
  work.next.resize(num_symbols);
  work.previous.resize(num_symbols);
  work.heap.clear();
  const auto entry = [&](std::uint32_t i) {
    return static_cast<std::uint64_t>(work.candidates[i].rank) << 32 | i;
  };
  for (std::uint32_t i = 0; i < num_symbols; ++i) {
    work.next[i] = i + 1;
    work.previous[i] = i - 1;  // of the first: never read, see below
    if (i + 1 == num_symbols) break;
    work.candidates[i] = find(symbols[i], symbols[i + 1]);
    if (work.candidates[i].rank != MergeTable::kNone) work.heap.push_back(entry(i));
  }
  std::make_heap(work.heap.begin(), work.heap.end(), std::greater<>());

  const auto look_again = [&](std::uint32_t i) {
    const std::uint32_t right = work.next[i];
    work.candidates[i] = right < num_symbols ? find(symbols[i], symbols[right])
                                             : MergeTable::Merge{MergeTable::kNone, -1};
    if (work.candidates[i].rank == MergeTable::kNone) return;
    work.heap.push_back(entry(i));
    std::push_heap(work.heap.begin(), work.heap.end(), std::greater<>());
  };
  while (!work.heap.empty()) {
    std::pop_heap(work.heap.begin(), work.heap.end(), std::greater<>());
    const std::uint64_t top = work.heap.back();
    work.heap.pop_back();
    const auto left = static_cast<std::uint32_t>(top);
    // Outdated: the pair changed since, or the symbol went into the one before it.
    if (work.candidates[left].rank != top >> 32) continue;
    const std::uint32_t right = work.next[left];
    symbols[left] = {work.candidates[left].id, symbols[left].begin, symbols[right].end};
    work.candidates[right].rank = MergeTable::kNone;
    work.next[left] = work.next[right];
    if (work.next[left] < num_symbols) work.previous[work.next[left]] = left;
    look_again(left);
    if (left > 0) look_again(work.previous[left]);
  }
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < num_symbols; i = work.next[i]) symbols[count++] = symbols[i];
  symbols.resize(count);
}

template <typename Find>
void merge_symbols(MergeWorkspace& work, const Find& find) {
  if (work.symbols.size() <= kMaxShortMerge) {
    merge_short(work, find);
  } else {
    merge_long(work, find);
  }
}

}  // namespace dunlin
