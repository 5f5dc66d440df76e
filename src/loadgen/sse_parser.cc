#include "loadgen/sse_parser.h"

namespace dunlin::loadgen {

bool SseParser::push(std::string_view bytes, FunctionRef<void(std::string_view data)> on_event) {
  if (is_broken_) return false;
  if (after_cr_ && !bytes.empty()) {
    if (bytes.front() == '\n') bytes.remove_prefix(1);
    after_cr_ = false;
  }
  while (!bytes.empty()) {
    const std::size_t end = bytes.find_first_of("\r\n");
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() + piece.size() > kMaxBytes) return !(is_broken_ = true);
    if (end == bytes.npos) {
      line_ += piece;
      return true;
    }
    bool is_ok = false;
    if (line_.empty()) {
      is_ok = take_line(piece, on_event);
    } else {
      line_ += piece;
      is_ok = take_line(line_, on_event);
      line_.clear();
    }
    if (!is_ok) return !(is_broken_ = true);
    const bool was_cr = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (was_cr && bytes.empty()) after_cr_ = true;
    if (was_cr && bytes.starts_with('\n')) bytes.remove_prefix(1);
  }
  return true;
}

bool SseParser::take_line(std::string_view line,
                          FunctionRef<void(std::string_view data)> on_event) {
  if (line.empty()) {
    if (has_data_) on_event(data_);
    data_.clear();
    has_data_ = false;
    return true;
  }
  constexpr std::string_view kData = "data";
  if (!line.starts_with(kData)) return true;
  line.remove_prefix(kData.size());
  if (!line.empty() && line.front() != ':') return true;  // another field
  if (!line.empty()) line.remove_prefix(1);
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (data_.size() + line.size() + 1 > kMaxBytes) return false;
  if (has_data_) data_ += '\n';
  data_ += line;
  has_data_ = true;
  return true;
}

}  // namespace dunlin::loadgen
