#include "eval/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "eval/svg_text.h"

namespace dunlin::eval {
namespace {

constexpr int kLeft = 84, kTop = 64, kCellWidth = 72, kCellHeight = 36, kMargin = 16;

std::string colour(double share) {
  using Colour = std::array<double, 3>;
  constexpr std::array<Colour, 3> kColours = {
      {{0xC2, 0x50, 0x3D}, {0xF2, 0xD2, 0x7A}, {0x5B, 0x9E, 0x5B}}};
  const double at = 2 * std::clamp(share, 0.0, 1.0);
  const std::size_t below = at < 1 ? 0 : 1;
  const double weight = at - static_cast<double>(below);
  std::string out = "#";
  for (std::size_t i = 0; i < 3; ++i)
    out += fmt::format(
        "{:02x}", std::lround((1 - weight) * kColours[below][i] + weight * kColours[below + 1][i]));
  return out;
}

}  // namespace

std::string heat_map_svg(const HeatMap& map) {
  const int num_rows = static_cast<int>(map.rows.size());
  const int num_columns = static_cast<int>(map.columns.size());
  const int right = kLeft + num_columns * kCellWidth, bottom = kTop + num_rows * kCellHeight;
  std::string svg;
  const auto out = std::back_inserter(svg);
  const auto centred = [&](int x, int y, const std::string& text) {
    fmt::format_to(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x, y,
                   svg_escaped(text));
  };
  fmt::format_to(out,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
                 "font-family=\"sans-serif\" font-size=\"12\">\n"
                 "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
                 "<text x=\"{}\" y=\"22\" font-size=\"14\">{}</text>\n",
                 std::max(right + kMargin, 480), bottom + 2 * kMargin, kMargin,
                 svg_escaped(map.title));
  centred((kLeft + right) / 2, bottom + kMargin + 4, map.column_title);
  fmt::format_to(out,
                 "<text transform=\"translate(20 {}) rotate(-90)\" "
                 "text-anchor=\"middle\">{}</text>\n",
                 (kTop + bottom) / 2, svg_escaped(map.row_title));
  for (int column = 0; column < num_columns; ++column)
    centred(kLeft + column * kCellWidth + kCellWidth / 2, kTop - 8,
            map.columns[static_cast<std::size_t>(column)]);
  for (int row = 0; row < num_rows; ++row) {
    const int y = kTop + row * kCellHeight, middle = y + kCellHeight / 2 + 4;
    fmt::format_to(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kLeft - 8,
                   middle, svg_escaped(map.rows[static_cast<std::size_t>(row)]));
    for (int column = 0; column < num_columns; ++column) {
      const double share = map.shares[static_cast<std::size_t>(row * num_columns + column)];
      const int x = kLeft + column * kCellWidth;
      fmt::format_to(out,
                     "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" "
                     "stroke=\"white\"/>\n",
                     x, y, kCellWidth, kCellHeight, colour(share));
      centred(x + kCellWidth / 2, middle, fmt::format("{:.0f}%", 100 * share));
    }
  }
  return svg + "</svg>\n";
}

}  // namespace dunlin::eval
