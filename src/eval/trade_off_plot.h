// What settings cost against what they give, as a picture.
#pragma once

#include <string>
#include <vector>

namespace dunlin::eval {

struct TradeOff {
  std::string name;
  double memory = 0;   // share of the base's
  double quality = 0;  // a divergence: 0 is the base's, less is better
};

struct TradeOffPlot {
  std::string title;
  std::string memory_title, quality_title;
  std::vector<TradeOff> points;
};

// As SVG: memory to the right from 0, the divergence upwards on a logarithmic scale (what is less
// than 1e-6 stands there), so the best are below, to the left. Names are put where they cover no
// other, if there is such a place.
std::string trade_off_svg(const TradeOffPlot& plot);

}  // namespace dunlin::eval
