#include "eval/trade_off_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "eval/svg_text.h"

namespace dunlin::eval {
namespace {

constexpr double kWidth = 720, kHeight = 440, kLeft = 76, kRight = 24, kTop = 48, kBottom = 52;
constexpr double kLeast = 1e-6, kLetterWidth = 6.6, kLineHeight = 13;

// Where numbers lie in the picture.
struct Axes {
  double most_memory = 1;
  int first_decade = -6, last_decade = 0;  // exponents of 10

  explicit Axes(const std::vector<TradeOff>& points) {
    double least = 1, most = kLeast;
    for (const TradeOff& point : points) {
      most_memory = std::max(most_memory, point.memory);
      least = std::min(least, std::max(point.quality, kLeast));
      most = std::max(most, point.quality);
    }
    most_memory = std::ceil(most_memory * 5 + 0.5) / 5;
    first_decade = static_cast<int>(std::floor(std::log10(least)));
    last_decade = std::max(first_decade + 1, static_cast<int>(std::ceil(std::log10(most))));
  }
  double x(double memory) const { return kLeft + memory / most_memory * (kWidth - kLeft - kRight); }
  double y(double quality) const {
    const double decades = std::log10(std::max(quality, kLeast)) - first_decade;
    return kHeight - kBottom - decades / (last_decade - first_decade) * (kHeight - kTop - kBottom);
  }
};

struct Box {
  double left, right, top, bottom;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// The box of `name` beside a point: right, left, above, below, then further away.
Box place_name(double x, double y, const std::string& name, const std::vector<Box>& taken) {
  const double width = kLetterWidth * static_cast<double>(name.size());
  Box first{};
  for (int distance = 0; distance < 4; ++distance) {
    const double dy = distance * kLineHeight;
    const std::array<std::array<double, 2>, 4> corners = {{{x + 8, y - 7 + dy},
                                                           {x - 8 - width, y - 7 + dy},
                                                           {x - width / 2, y - 20 - dy},
                                                           {x - width / 2, y + 7 + dy}}};
    for (const auto& [left, top] : corners) {
      const Box box{left, left + width, top, top + kLineHeight};
      if (first.right == 0) first = box;
      const bool inside = box.left > kLeft && box.right < kWidth && box.top > kTop - kLineHeight &&
                          box.bottom < kHeight - kBottom + kLineHeight;
      if (inside && std::none_of(taken.begin(), taken.end(),
                                 [&](const Box& other) { return box.meets(other); }))
        return box;
    }
  }
  return first;
}

void draw_axes(std::string& svg, const Axes& axes, const TradeOffPlot& plot) {
  const auto out = std::back_inserter(svg);
  const double bottom = kHeight - kBottom, right = kWidth - kRight;
  for (int tick = 0; tick * 0.2 <= axes.most_memory + 1e-9; ++tick) {
    const double x = axes.x(tick * 0.2);
    fmt::format_to(
        out,
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#e4e4e4\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}%</text>\n",
        x, kTop, bottom, bottom + 18, 20 * tick);
  }
  for (int decade = axes.first_decade; decade <= axes.last_decade; ++decade) {
    const double y = axes.y(std::pow(10.0, decade));
    fmt::format_to(
        out,
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#e4e4e4\"/>\n"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:g}</text>\n",
        kLeft, right, y, kLeft - 6, y + 4, std::pow(10.0, decade));
  }
  fmt::format_to(
      out,
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n"
      "<text transform=\"translate(18 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      (kLeft + right) / 2, kHeight - 12, svg_escaped(plot.memory_title), (kTop + bottom) / 2,
      svg_escaped(plot.quality_title));
}

}  // namespace

std::string trade_off_svg(const TradeOffPlot& plot) {
  const Axes axes(plot.points);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"16\" y=\"24\" font-size=\"14\">{}</text>\n",
      kWidth, kHeight, svg_escaped(plot.title));
  draw_axes(svg, axes, plot);
  std::vector<Box> taken;
  for (const TradeOff& point : plot.points) {
    const double x = axes.x(point.memory), y = axes.y(point.quality);
    taken.push_back({x - 5, x + 5, y - 5, y + 5});
  }
  for (const TradeOff& point : plot.points) {
    const double x = axes.x(point.memory), y = axes.y(point.quality);
    const Box box = place_name(x, y, point.name, taken);
    taken.push_back(box);
    fmt::format_to(std::back_inserter(svg),
                   "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#2f6f8f\"/>\n"
                   "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"11\">{}</text>\n",
                   x, y, box.left, box.bottom - 3, svg_escaped(point.name));
  }
  return svg + "</svg>\n";
}

}  // namespace dunlin::eval
