// A progress line on stderr: redrawn in place on a terminal, one line at the start and one at the
// end elsewhere. Used from one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace dunlin::cli {

class ProgressBar {
 public:
  ProgressBar(std::string label, bool quiet);
  ~ProgressBar();  // ends the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // total_bytes 0: not known. Draws at most ten times a second.
  void update_bytes(std::uint64_t done_bytes, std::uint64_t total_bytes);
  void update_fraction(double fraction, const std::string& phase);

  static bool on_terminal();  // stderr is one that can redraw

 private:
  void draw(double fraction, const std::string& text);

  std::string label_;
  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_, last_draw_;
  std::uint64_t first_bytes_ = UINT64_MAX;  // what a resumed transfer had already
};

// "98.0 MB", "1.2 GB": powers of ten, as download pages count.
std::string format_bytes(std::uint64_t bytes);

// "1.5 GiB", "512 KiB": powers of two, as memory is counted.
std::string format_memory(std::int64_t bytes);

// "12,345".
std::string grouped(std::int64_t number);

}  // namespace dunlin::cli
