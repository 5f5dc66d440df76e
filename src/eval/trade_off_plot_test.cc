#include "eval/trade_off_plot.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

namespace dunlin::eval {
namespace {

std::vector<double> numbers(const std::string& svg, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<double> found;
  for (std::sregex_iterator it(svg.begin(), svg.end(), regex), end; it != end; ++it)
    found.push_back(std::stod((*it)[1]));
  return found;
}

TEST(TradeOffPlot, PutsMoreMemoryRightAndMoreDivergenceUp) {
  const std::string svg =
      trade_off_svg({.title = "a < b & c",
                     .memory_title = "memory",
                     .quality_title = "divergence",
                     .points = {{"f16", 1, 0}, {"int8", 0.5, 1e-3}, {"int4", 0.27, 0.1}}});
  EXPECT_NE(svg.find("a &lt; b &amp; c"), std::string::npos);
  const auto x = numbers(svg, "cx=\"([0-9.]+)\""), y = numbers(svg, "cy=\"([0-9.]+)\"");
  ASSERT_EQ(x.size(), 3u);
  EXPECT_GT(x[0], x[1]);
  EXPECT_GT(x[1], x[2]);
  EXPECT_GT(y[0], y[1]) << "pixels count downwards";
  EXPECT_GT(y[1], y[2]);
  EXPECT_NEAR((y[1] - y[2]) / (y[0] - y[1]), 2.0 / 3, 0.01)
      << "two decades and three: 1e-6 stands for 0";
}

TEST(TradeOffPlot, NamesOfPointsInOnePlaceStandApart) {
  TradeOffPlot plot{.title = "t", .memory_title = "m", .quality_title = "q", .points = {}};
  for (int i = 0; i < 6; ++i) plot.points.push_back({"name" + std::to_string(i), 0.5, 1e-3});
  const std::string svg = trade_off_svg(plot);
  const std::regex regex("<text x=\"([0-9.]+)\" y=\"([0-9.]+)\" font-size=\"11\">");
  std::vector<std::pair<double, double>> at;
  for (std::sregex_iterator it(svg.begin(), svg.end(), regex), end; it != end; ++it)
    at.emplace_back(std::stod((*it)[1]), std::stod((*it)[2]));
  ASSERT_EQ(at.size(), 6u);
  for (std::size_t i = 0; i < at.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      EXPECT_TRUE(std::abs(at[i].first - at[k].first) > 30 ||
                  std::abs(at[i].second - at[k].second) > 12)
          << i << " and " << k;
}

}  // namespace
}  // namespace dunlin::eval
