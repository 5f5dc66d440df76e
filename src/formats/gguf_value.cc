// Reading single metadata values out of the map. The parser has checked that they are inside it.
#include <cstring>
#include <limits>

#include "base/check.h"
#include "formats/gguf.h"

namespace dunlin {
namespace {

template <typename T>
T load(const std::byte* data, std::size_t idx) {
  T value;
  std::memcpy(&value, data + idx * sizeof(T), sizeof(T));
  return value;
}

std::int64_t load_integer(GgufType type, const std::byte* data, std::size_t idx) {
  switch (type) {
    case GgufType::kU8: return load<std::uint8_t>(data, idx);
    case GgufType::kI8: return load<std::int8_t>(data, idx);
    case GgufType::kU16: return load<std::uint16_t>(data, idx);
    case GgufType::kI16: return load<std::int16_t>(data, idx);
    case GgufType::kU32: return load<std::uint32_t>(data, idx);
    case GgufType::kI32: return load<std::int32_t>(data, idx);
    case GgufType::kI64: return load<std::int64_t>(data, idx);
    case GgufType::kU64: {
      constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
      const auto value = load<std::uint64_t>(data, idx);
      return value > static_cast<std::uint64_t>(kMax) ? kMax : static_cast<std::int64_t>(value);
    }
    default: break;
  }
  DUNLIN_CHECK(false, "a metadata value is read as an integer and is none");
  return 0;
}

double load_number(GgufType type, const std::byte* data, std::size_t idx) {
  if (type == GgufType::kF32) return load<float>(data, idx);
  if (type == GgufType::kF64) return load<double>(data, idx);
  if (type == GgufType::kU64) return static_cast<double>(load<std::uint64_t>(data, idx));
  return static_cast<double>(load_integer(type, data, idx));
}

}  // namespace

std::string_view gguf_type_name(GgufType type) {
  switch (type) {
    case GgufType::kU8: return "u8";
    case GgufType::kI8: return "i8";
    case GgufType::kU16: return "u16";
    case GgufType::kI16: return "i16";
    case GgufType::kU32: return "u32";
    case GgufType::kI32: return "i32";
    case GgufType::kF32: return "f32";
    case GgufType::kBool: return "bool";
    case GgufType::kString: return "string";
    case GgufType::kArray: return "array";
    case GgufType::kU64: return "u64";
    case GgufType::kI64: return "i64";
    case GgufType::kF64: return "f64";
  }
  return "?";
}

bool gguf_type_is_integer(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kU16:
    case GgufType::kI16:
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kU64:
    case GgufType::kI64: return true;
    default: return false;
  }
}

bool gguf_type_is_float(GgufType type) { return type == GgufType::kF32 || type == GgufType::kF64; }

std::string_view GgufArray::string(std::size_t idx) const {
  DUNLIN_DCHECK(element_type_ == GgufType::kString && idx < size_, "no such string");
  const auto length = load<std::uint64_t>(strings_[idx], 0);
  return {reinterpret_cast<const char*>(strings_[idx] + sizeof(length)), length};
}

std::int64_t GgufArray::integer(std::size_t idx) const {
  DUNLIN_DCHECK(idx < size_, "no such element");
  return load_integer(element_type_, data_, idx);
}

double GgufArray::number(std::size_t idx) const {
  DUNLIN_DCHECK(idx < size_, "no such element");
  return load_number(element_type_, data_, idx);
}

bool GgufArray::boolean(std::size_t idx) const {
  DUNLIN_DCHECK(element_type_ == GgufType::kBool && idx < size_, "no such element");
  return load<std::uint8_t>(data_, idx) != 0;
}

std::string_view GgufEntry::string() const {
  DUNLIN_DCHECK(type == GgufType::kString, "not a string");
  return {reinterpret_cast<const char*>(data), count};
}

std::int64_t GgufEntry::integer() const { return load_integer(type, data, 0); }
double GgufEntry::number() const { return load_number(type, data, 0); }

bool GgufEntry::boolean() const {
  DUNLIN_DCHECK(type == GgufType::kBool, "not a bool");
  return load<std::uint8_t>(data, 0) != 0;
}

GgufArray GgufEntry::array() const {
  DUNLIN_DCHECK(type == GgufType::kArray, "not an array");
  GgufArray array;
  array.element_type_ = element_type;
  array.size_ = count;
  array.data_ = data;
  array.strings_ = strings.data();
  return array;
}

}  // namespace dunlin
