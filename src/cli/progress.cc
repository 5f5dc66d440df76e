#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "terminal/graphemes.h"
#include "terminal/screen.h"

namespace dunlin::cli {
namespace {

constexpr int kBarWidth = 28;
constexpr auto kRedraw = std::chrono::milliseconds(100);

}  // namespace

ProgressBar::ProgressBar(std::string label, bool quiet)
    : label_(std::move(label)),
      quiet_(quiet),
      terminal_(on_terminal()),
      start_(std::chrono::steady_clock::now()) {
  if (!quiet_ && !terminal_) fmt::print(stderr, "{} ...\n", label_);
}

ProgressBar::~ProgressBar() {
  if (drawn_) std::fputs("\r\033[K", stderr);  // what was waited for is there: the line has served
}

void ProgressBar::update_bytes(std::uint64_t done_bytes, std::uint64_t total_bytes) {
  first_bytes_ = std::min(first_bytes_, done_bytes);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const double rate =
      elapsed.count() > 0.2 ? double(done_bytes - first_bytes_) / elapsed.count() : 0;
  std::string text = format_bytes(done_bytes);
  if (total_bytes > 0) text += " of " + format_bytes(total_bytes);
  if (rate > 0) {
    text += fmt::format(", {}/s", format_bytes(static_cast<std::uint64_t>(rate)));
    if (total_bytes > done_bytes)
      text += fmt::format(", {:.0f} s left", double(total_bytes - done_bytes) / rate);
  }
  draw(total_bytes > 0 ? double(done_bytes) / double(total_bytes) : -1, text);
}

bool ProgressBar::on_terminal() { return terminal::can_move_cursor(STDERR_FILENO); }

void ProgressBar::update_fraction(double fraction, const std::string& phase) {
  draw(fraction, phase);
}

void ProgressBar::draw(double fraction, const std::string& text) {
  if (quiet_ || !terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && now - last_draw_ < kRedraw && fraction < 1) return;
  last_draw_ = now;
  drawn_ = true;
  std::string bar;
  if (fraction >= 0) {
    const int full = std::clamp(static_cast<int>(fraction * kBarWidth), 0, kBarWidth);
    bar = fmt::format(" [{:=<{}}{: <{}}] {:3.0f}%", "", full, "", kBarWidth - full,
                      std::min(fraction, 1.0) * 100);
  }
  // A line that the terminal folds can't be drawn over.
  const std::string line = fmt::format("{}{} {}", label_, bar, text);
  fmt::print(stderr, "\r\033[K{}",
             terminal::clip_to_columns(line, terminal::screen_size(STDERR_FILENO).columns - 1));
  std::fflush(stderr);
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1000 && unit < 4) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_memory(std::int64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const bool is_whole = value == std::floor(value);
  return fmt::format("{:.{}f} {}", value,
                     is_whole || value >= 100 ? 0
                     : value >= 10            ? 1
                                              : 2,
                     kUnits[unit]);
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

}  // namespace dunlin::cli
