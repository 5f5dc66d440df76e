// Characters as a reader sees them (grapheme clusters, Unicode annex 29) and the columns that a
// terminal gives them. All text is valid UTF-8; positions are bytes at the border of a cluster.
#pragma once

#include <cstddef>
#include <string_view>

namespace dunlin::terminal {

// Where the cluster that begins at `pos` ends. `pos` must be below text.size().
std::size_t next_grapheme(std::string_view text, std::size_t pos);
// Where the cluster that ends at `pos` begins. `pos` must be above 0.
std::size_t previous_grapheme(std::string_view text, std::size_t pos);

// Columns of one cluster: 0, 1, or 2 (wide).
int grapheme_width(std::string_view grapheme);

// The longest beginning of `text`, one line without control characters, that fits into `columns`.
std::string_view clip_to_columns(std::string_view text, int columns);

}  // namespace dunlin::terminal
