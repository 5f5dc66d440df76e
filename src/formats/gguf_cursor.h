// Reads the bytes of a GGUF file one field after the other, never past their end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "dunlin/status.h"

namespace dunlin {

class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> bytes, std::string_view path)
      : bytes_(bytes), path_(path) {}

 protected:
  std::uint64_t left() const { return bytes_.size() - at_; }

  // The refusal "PATH: WHAT (byte OFFSET)".
  tl::unexpected<Status> fail_at(std::uint64_t offset, std::string_view what,
                                 StatusCode code = StatusCode::kInvalidArgument) const;
  tl::unexpected<Status> ends_early(std::string_view reading) const;

  // One number; `reading` says in a refusal what it is.
  template <typename T>
  Result<T> read(std::string_view reading) {
    if (left() < sizeof(T)) return ends_early(reading);
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  // A length and as many bytes, which may be anything.
  Result<std::string_view> read_string(std::string_view reading, std::uint64_t max_bytes);
  // A string that is UTF-8, not empty, and without zero bytes.
  Result<std::string_view> read_name(std::string_view reading, std::uint64_t max_bytes);

  std::span<const std::byte> bytes_;
  std::string_view path_;
  std::uint64_t at_ = 0;
};

}  // namespace dunlin
