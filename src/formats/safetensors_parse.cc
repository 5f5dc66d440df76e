#include "formats/safetensors_parse.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/quote.h"

namespace dunlin {
namespace {

using nlohmann::json;

struct StoredType {
  std::string_view name;
  std::uint64_t bits;
  std::optional<DType> dtype;  // nullopt: none of ours
};

constexpr StoredType kStoredTypes[] = {
    {"F32", 32, DType::kF32},     {"F16", 16, DType::kF16},     {"BF16", 16, DType::kBF16},
    {"F64", 64, DType::kF64},     {"I64", 64, DType::kI64},     {"I32", 32, DType::kI32},
    {"I16", 16, DType::kI16},     {"I8", 8, DType::kI8},        {"U8", 8, std::nullopt},
    {"U16", 16, std::nullopt},    {"U32", 32, std::nullopt},    {"U64", 64, std::nullopt},
    {"BOOL", 8, std::nullopt},    {"F8_E4M3", 8, std::nullopt}, {"F8_E5M2", 8, std::nullopt},
    {"F8_E8M0", 8, std::nullopt},
};

const StoredType* find_type(std::string_view name) {
  for (const StoredType& type : kStoredTypes)
    if (type.name == name) return &type;
  return nullptr;
}

struct Entry {
  SafetensorsTensor tensor;
  std::uint64_t begin = 0, end = 0;
};

// A whole number that JSON may have written as unsigned only: -1 and 1.5 are none.
std::optional<std::uint64_t> whole(const json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

Result<std::vector<std::uint64_t>> wholes(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_array()) {
    return invalid(fmt::format("has no array \"{}\"", key));
  }
  std::vector<std::uint64_t> values;
  for (const json& item : *it) {
    const auto value = whole(item);
    if (!value) return invalid(fmt::format("has \"{}\" with other than whole numbers", key));
    values.push_back(*value);
  }
  return values;
}

// Bytes of so many elements; nullopt: more than 2^63.
std::optional<std::uint64_t> size_of(std::span<const std::uint64_t> shape, std::uint64_t bits) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 60;
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape) {
    if (extent != 0 && count > kMax / extent) return std::nullopt;
    count *= extent;
  }
  if (count > kMax / (bits / 8)) return std::nullopt;
  return count * (bits / 8);
}

void set_view(const StoredType& type, std::span<const std::uint64_t> shape, const std::byte* data,
              SafetensorsTensor& tensor) {
  const bool empty = std::find(shape.begin(), shape.end(), 0u) != shape.end();
  const bool has_view = shape.size() <= 4 && !empty;
  tensor.readable = has_view && type.dtype.has_value();
  if (!has_view || (!tensor.readable && type.bits != 8)) return;
  TensorView& view = tensor.view;
  view.dtype = type.dtype.value_or(DType::kI8);
  view.rank = std::max(1, static_cast<int>(shape.size()));  // a scalar is a vector of one
  view.shape = {1, 1, 1, 1};
  for (std::size_t i = 0; i < shape.size(); ++i)
    view.shape[i] = static_cast<std::int64_t>(shape[i]);
  view.data = data;
}

Result<Entry> parse_entry(const std::string& name, const json& info,
                          std::span<const std::byte> data) {
  if (!info.is_object()) return invalid("is not a JSON object");
  const auto dtype = info.find("dtype");
  if (dtype == info.end() || !dtype->is_string()) return invalid("has no \"dtype\"");
  const auto& type_name = dtype->get_ref<const std::string&>();
  const StoredType* type = find_type(type_name);
  if (type == nullptr) {
    return invalid(fmt::format("is of unknown type {}", quote_for_message(type_name, 20)));
  }
  DUNLIN_ASSIGN(shape, wholes(info, "shape"));
  DUNLIN_ASSIGN(offsets, wholes(info, "data_offsets"));
  if (offsets.size() != 2) return invalid("has \"data_offsets\" that are not two numbers");
  const std::uint64_t begin = offsets[0], end = offsets[1];
  if (begin > end || end > data.size()) {
    return invalid(fmt::format("lies at bytes {} to {} of {}", begin, end, data.size()));
  }
  const auto size = size_of(shape, type->bits);
  if (!size || *size != end - begin) {
    return invalid(fmt::format("has {} bytes, which is not what its shape and type {} make",
                               end - begin, type_name));
  }
  Entry entry;
  entry.begin = begin;
  entry.end = end;
  entry.tensor.name = name;
  entry.tensor.stored_type = type_name;
  set_view(*type, shape, data.data() + begin, entry.tensor);
  return entry;
}

Result<json> parse_header(std::span<const std::byte> bytes) {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof size) {
    return invalid(fmt::format("is no safetensors file: it has only {} bytes", bytes.size()));
  }
  for (std::size_t i = 0; i < sizeof size; ++i)
    size |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  if (size < 2 || size > kMaxSafetensorsHeader || size > bytes.size() - 8) {
    return invalid(
        fmt::format("is no safetensors file, or cut short: its header would have {} bytes, the "
                    "file has {}",
                    size, bytes.size()));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8,
                              static_cast<std::size_t>(size));
  JsonLimits limits;
  limits.max_bytes = kMaxSafetensorsHeader;
  limits.max_depth = 4;
  auto header = parse_json(text, limits);
  if (!header)
    return tl::unexpected(Status(header.error().code(), "the header " + header.error().message()));
  if (!header->is_object()) return invalid("the header is not a JSON object");
  return header;
}

// Whether the ranges fill the data without a gap.
Outcome check_ranges(std::span<const Entry> entries, std::uint64_t data_size) {
  std::uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin < at) {
      return invalid(fmt::format("tensor {} overlaps the one before it",
                                 quote_for_message(entry.tensor.name)));
    }
    if (entry.begin > at) {
      return invalid(fmt::format("{} bytes before tensor {} belong to none", entry.begin - at,
                                 quote_for_message(entry.tensor.name)));
    }
    at = entry.end;
  }
  if (at != data_size) {
    return invalid(fmt::format("the last {} bytes belong to no tensor", data_size - at));
  }
  return {};
}

Result<std::vector<SafetensorsTensor>> parse(std::span<const std::byte> bytes) {
  DUNLIN_ASSIGN(header, parse_header(bytes));
  std::uint64_t header_size = 0;
  for (std::size_t i = 0; i < 8; ++i)
    header_size |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  const std::span<const std::byte> data = bytes.subspan(8 + static_cast<std::size_t>(header_size));
  std::vector<Entry> entries;
  for (const auto& [name, info] : header.items()) {
    if (name == "__metadata__") continue;
    auto entry = parse_entry(name, info, data);
    if (!entry) {
      return tl::unexpected(
          Status(entry.error().code(),
                 fmt::format("tensor {} {}", quote_for_message(name), entry.error().message())));
    }
    entries.push_back(std::move(*entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  DUNLIN_TRY(check_ranges(entries, data.size()));
  std::vector<SafetensorsTensor> tensors;
  tensors.reserve(entries.size());
  for (Entry& entry : entries) tensors.push_back(std::move(entry.tensor));
  return tensors;
}

}  // namespace

Result<std::vector<SafetensorsTensor>> parse_safetensors(std::span<const std::byte> bytes,
                                                         std::string_view path) {
  auto tensors = parse(bytes);
  if (!tensors) return tl::unexpected(tensors.error().with_prefix(path));
  return tensors;
}

}  // namespace dunlin
