// Writes GGUF files, version 3: for conversion and tests. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "formats/gguf.h"
#include "tensor/dtype.h"

namespace dunlin {

class GgufWriter {
 public:
  // Writes the tensor's bytes to `out`, which has its whole size. An error ends the writing.
  using Fill = std::function<Outcome(std::span<std::byte> out)>;

  explicit GgufWriter(std::uint32_t alignment = 32);

  // Metadata, in the order of the calls; keys must be unique (CHECK).
  void set_u32(std::string_view key, std::uint32_t value);
  void set_i32(std::string_view key, std::int32_t value);
  void set_u16(std::string_view key, std::uint16_t value);
  void set_u64(std::string_view key, std::uint64_t value);
  void set_f32(std::string_view key, float value);
  void set_bool(std::string_view key, bool value);
  void set_string(std::string_view key, std::string_view value);
  void set_strings(std::string_view key, std::span<const std::string> values);
  void set_i32s(std::string_view key, std::span<const std::int32_t> values);
  void set_u8s(std::string_view key, std::string_view bytes);
  void set_f32s(std::string_view key, std::span<const float> values);

  // A tensor of `shape`, outermost first, one to four dimensions, rows of whole blocks (CHECK).
  // The bytes are given now, or made by `fill` when the file is written.
  void add_tensor(std::string_view name, DType dtype, std::span<const std::int64_t> shape,
                  std::vector<std::byte> bytes);
  void add_tensor(std::string_view name, DType dtype, std::span<const std::int64_t> shape,
                  Fill fill);

  // The whole file in memory; fills must not fail (CHECK).
  std::vector<std::byte> build() const;

  // Writes to PATH.part and renames it. kAlreadyExists where `path` is there; a Status with the
  // system's reason where writing fails, or the fill's own; PATH.part is removed then.
  Outcome write(const std::string& path) const;

 private:
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t size_bytes;
    Fill fill;
  };

  std::string& begin_value(std::string_view key, GgufType type);
  std::uint64_t padded(std::uint64_t size) const;
  std::string header() const;

  std::uint32_t alignment_;
  std::string metadata_;  // encoded
  std::vector<std::string> keys_;
  std::vector<Tensor> tensors_;
};

}  // namespace dunlin
