// Rewrites a NormalizedText from front to back and keeps its ranges of trust in step.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "text/hf_normalizer.h"

namespace dunlin::hf {

class NormalizedWriter {
 public:
  explicit NormalizedWriter(NormalizedText& target) : target_(target), source_(target.text) {
    out_.reserve(source_.size() + source_.size() / 8 + 16);
  }

  std::string_view source() const { return source_; }
  std::size_t position() const { return pos_; }

  // Takes over source up to `end` as it is.
  void copy_until(std::size_t end) {
    while (range_idx_ < target_.ranges.size() && target_.ranges[range_idx_].end <= end) {
      const std::size_t part_end = target_.ranges[range_idx_].end;
      out_.append(source_.substr(pos_, part_end - pos_));
      pos_ = part_end;
      close_range();
    }
    out_.append(source_.substr(pos_, end - pos_));
    pos_ = end;
  }

  // Puts `text` in the place of source up to `end`. Where that holds text of both kinds, the
  // outcome is not trusted.
  void replace_until(std::size_t end, std::string_view text) {
    if (text.empty() && out_.empty() && end > pos_) target_.at_start = false;
    const bool mixed = range_idx_ < target_.ranges.size() && target_.ranges[range_idx_].end < end;
    if (mixed) add_range(out_.size(), target_.ranges[range_idx_].trusted);
    out_.append(text);
    pos_ = end;
    while (range_idx_ < target_.ranges.size() && target_.ranges[range_idx_].end < end) ++range_idx_;
    if (mixed) add_range(out_.size(), false);
    if (range_idx_ < target_.ranges.size() && target_.ranges[range_idx_].end == end) {
      if (mixed) {
        ++range_idx_;
      } else {
        close_range();
      }
    }
  }

  void finish() {
    copy_until(source_.size());
    target_.text = std::move(out_);
    target_.ranges = std::move(ranges_);
  }

 private:
  void close_range() { add_range(out_.size(), target_.ranges[range_idx_++].trusted); }
  void add_range(std::size_t end, bool trusted) {
    const std::size_t begin = ranges_.empty() ? 0 : ranges_.back().end;
    if (end == begin) return;
    if (!ranges_.empty() && ranges_.back().trusted == trusted) {
      ranges_.back().end = end;
    } else {
      ranges_.push_back({end, trusted});
    }
  }

  NormalizedText& target_;
  std::string_view source_;
  std::string out_;
  std::vector<TrustRange> ranges_;
  std::size_t pos_ = 0;
  std::size_t range_idx_ = 0;
};

}  // namespace dunlin::hf
