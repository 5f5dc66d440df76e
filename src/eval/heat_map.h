// A table of shares as a picture.
#pragma once

#include <string>
#include <vector>

namespace dunlin::eval {

struct HeatMap {
  std::string title;
  std::string row_title, column_title;
  std::vector<std::string> rows, columns;  // labels
  std::vector<double> shares;              // [rows, columns], each in [0, 1]
};

// As SVG: red where the share is 0, yellow at a half, green at 1, the share in per cent in each
// cell.
std::string heat_map_svg(const HeatMap& map);

}  // namespace dunlin::eval
