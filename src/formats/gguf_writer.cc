#include "formats/gguf_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "formats/gguf_dtypes.h"

namespace dunlin {
namespace {

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void put_string(std::string& out, std::string_view text) {
  put(out, std::uint64_t{text.size()});
  out += text;
}

template <typename T>
void put_numbers(std::string& out, GgufType element_type, std::span<const T> values) {
  put(out, element_type);
  put(out, std::uint64_t{values.size()});
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

}  // namespace

GgufWriter::GgufWriter(std::uint32_t alignment) : alignment_(alignment) {
  set_u32("general.alignment", alignment);
}

std::string& GgufWriter::begin_value(std::string_view key, GgufType type) {
  DUNLIN_CHECK(std::find(keys_.begin(), keys_.end(), key) == keys_.end(), "a key is set twice");
  keys_.emplace_back(key);
  put_string(metadata_, key);
  put(metadata_, type);
  return metadata_;
}

void GgufWriter::set_u32(std::string_view key, std::uint32_t value) {
  put(begin_value(key, GgufType::kU32), value);
}
void GgufWriter::set_i32(std::string_view key, std::int32_t value) {
  put(begin_value(key, GgufType::kI32), value);
}
void GgufWriter::set_u16(std::string_view key, std::uint16_t value) {
  put(begin_value(key, GgufType::kU16), value);
}
void GgufWriter::set_u64(std::string_view key, std::uint64_t value) {
  put(begin_value(key, GgufType::kU64), value);
}
void GgufWriter::set_f32(std::string_view key, float value) {
  put(begin_value(key, GgufType::kF32), value);
}
void GgufWriter::set_bool(std::string_view key, bool value) {
  put(begin_value(key, GgufType::kBool), std::uint8_t{value});
}
void GgufWriter::set_string(std::string_view key, std::string_view value) {
  put_string(begin_value(key, GgufType::kString), value);
}

void GgufWriter::set_strings(std::string_view key, std::span<const std::string> values) {
  std::string& out = begin_value(key, GgufType::kArray);
  put(out, GgufType::kString);
  put(out, std::uint64_t{values.size()});
  for (const std::string& value : values) put_string(out, value);
}

void GgufWriter::set_i32s(std::string_view key, std::span<const std::int32_t> values) {
  put_numbers(begin_value(key, GgufType::kArray), GgufType::kI32, values);
}
void GgufWriter::set_f32s(std::string_view key, std::span<const float> values) {
  put_numbers(begin_value(key, GgufType::kArray), GgufType::kF32, values);
}

void GgufWriter::add_tensor(std::string_view name, DType dtype, std::span<const std::int64_t> shape,
                            std::vector<std::byte> bytes) {
  const std::size_t given = bytes.size();
  add_tensor(name, dtype, shape, [bytes = std::move(bytes)](std::span<std::byte> out) {
    std::memcpy(out.data(), bytes.data(), out.size());
  });
  DUNLIN_CHECK(tensors_.back().size_bytes == given, "a tensor's bytes are not its shape's");
}

void GgufWriter::add_tensor(std::string_view name, DType dtype, std::span<const std::int64_t> shape,
                            Fill fill) {
  DUNLIN_CHECK(!shape.empty() && shape.size() <= 4, "a tensor has one to four dimensions");
  DUNLIN_CHECK(shape.back() % dtype_info(dtype).block_size == 0, "rows must be whole blocks");
  std::int64_t size_bytes = row_bytes(dtype, shape.back());
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) size_bytes *= shape[i];
  tensors_.push_back({std::string(name),
                      dtype,
                      {shape.begin(), shape.end()},
                      static_cast<std::uint64_t>(size_bytes),
                      std::move(fill)});
}

std::uint64_t GgufWriter::padded(std::uint64_t size) const {
  return (size + alignment_ - 1) / alignment_ * alignment_;
}

// Everything before the data, padding included.
std::string GgufWriter::header() const {
  std::string out = "GGUF";
  put(out, std::uint32_t{3});
  put(out, std::uint64_t{tensors_.size()});
  put(out, std::uint64_t{keys_.size()});
  out += metadata_;
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    put_string(out, tensor.name);
    put(out, static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto it = tensor.shape.rbegin(); it != tensor.shape.rend(); ++it) put(out, *it);
    put(out, gguf_number_of(tensor.dtype));
    put(out, offset);
    offset += padded(tensor.size_bytes);
  }
  out.resize(padded(out.size()), '\0');
  return out;
}

std::vector<std::byte> GgufWriter::build() const {
  const std::string head = header();
  std::uint64_t size = head.size();
  for (const Tensor& tensor : tensors_) size += padded(tensor.size_bytes);
  std::vector<std::byte> out(size);
  std::memcpy(out.data(), head.data(), head.size());
  std::uint64_t at = head.size();
  for (const Tensor& tensor : tensors_) {
    tensor.fill(std::span(out).subspan(at, tensor.size_bytes));
    at += padded(tensor.size_bytes);
  }
  return out;
}

Outcome GgufWriter::write(const std::string& path) const {
  if (std::filesystem::exists(path)) {
    return fail(StatusCode::kAlreadyExists, path + ": is already there; give another name");
  }
  const std::string part = path + ".part";
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  const std::string head = header();
  out.write(head.data(), static_cast<std::streamsize>(head.size()));
  std::vector<std::byte> bytes;
  for (const Tensor& tensor : tensors_) {
    bytes.assign(padded(tensor.size_bytes), std::byte{0});
    tensor.fill(std::span(bytes).first(tensor.size_bytes));
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }
  out.close();
  std::error_code error;
  if (out) {
    std::filesystem::rename(part, path, error);
    if (!error) return {};
  } else {
    error = std::error_code(errno, std::generic_category());
  }
  const std::string reason = error.message();
  std::filesystem::remove(part, error);
  return invalid(fmt::format("{}: cannot write it: {}", path, reason));
}

}  // namespace dunlin
