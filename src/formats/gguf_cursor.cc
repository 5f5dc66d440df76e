#include "formats/gguf_cursor.h"

#include <fmt/format.h>

#include "base/quote.h"
#include "base/utf8.h"

namespace dunlin {

tl::unexpected<Status> GgufCursor::fail_at(std::uint64_t offset, std::string_view what,
                                           StatusCode code) const {
  return fail(code, fmt::format("{}: {} (byte {})", path_, what, offset));
}

tl::unexpected<Status> GgufCursor::ends_early(std::string_view reading) const {
  return fail_at(
      at_, fmt::format("the file ends early, in {}; its download or copy is incomplete", reading),
      StatusCode::kDataLoss);
}

Result<std::string_view> GgufCursor::read_string(std::string_view reading,
                                                 std::uint64_t max_bytes) {
  const std::uint64_t start = at_;
  DUNLIN_ASSIGN(length, read<std::uint64_t>(reading));
  if (length > left()) {
    return fail_at(start, fmt::format("{} claims {} bytes, and {} are left in the file", reading,
                                      length, left()));
  }
  if (length > max_bytes) {
    return fail_at(start, fmt::format("{} has {} bytes, more than the {} allowed", reading, length,
                                      max_bytes));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data() + at_), length);
  at_ += length;
  return text;
}

Result<std::string_view> GgufCursor::read_name(std::string_view reading, std::uint64_t max_bytes) {
  const std::uint64_t start = at_;
  DUNLIN_ASSIGN(name, read_string(reading, max_bytes));
  if (name.empty()) return fail_at(start, fmt::format("{} is empty", reading));
  if (name.find('\0') != std::string_view::npos) {
    return fail_at(start,
                   fmt::format("{} {} has a zero byte in it", reading, quote_for_message(name)));
  }
  if (find_broken_utf8(name) != name.size()) {
    return fail_at(start, fmt::format("{} {} is not UTF-8", reading, quote_for_message(name)));
  }
  return name;
}

}  // namespace dunlin
