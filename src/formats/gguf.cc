#include "formats/gguf.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/quote.h"
#include "formats/gguf_parse.h"

namespace dunlin {
namespace {

// "NAME-00002-of-00005.gguf", numbers from 1.
struct PartName {
  std::string prefix;
  std::uint32_t number = 0;
  std::uint32_t count = 0;
};

std::string part_path(const std::string& prefix, std::uint32_t number, std::uint32_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number, count);
}

std::optional<std::uint32_t> five_digits(std::string_view text) {
  std::uint32_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint32_t>(c - '0');
  }
  return value;
}

std::optional<PartName> parse_part_name(const std::string& path) {
  constexpr std::string_view kShape = "-00000-of-00000.gguf";
  if (path.size() <= kShape.size()) return std::nullopt;
  const std::string_view tail = std::string_view(path).substr(path.size() - kShape.size());
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf") {
    return std::nullopt;
  }
  const auto number = five_digits(tail.substr(1, 5)), count = five_digits(tail.substr(10, 5));
  if (!number || !count || *number < 1 || *number > *count) return std::nullopt;
  return PartName{path.substr(0, path.size() - kShape.size()), *number, *count};
}

template <typename T, typename Name>
const T* find_sorted(const std::vector<T>& items, const std::vector<std::uint32_t>& order,
                     std::string_view wanted, Name name) {
  const auto it = std::lower_bound(
      order.begin(), order.end(), wanted,
      [&](std::uint32_t idx, std::string_view text) { return name(items[idx]) < text; });
  if (it == order.end() || name(items[*it]) != wanted) return nullptr;
  return &items[*it];
}

std::string describe(const GgufEntry& entry) {
  if (entry.type != GgufType::kArray) return std::string(gguf_type_name(entry.type));
  return fmt::format("array of {}", gguf_type_name(entry.element_type));
}

}  // namespace

// One opened and parsed file of a model.
struct GgufPart {
  MappedFile file;
  GgufContents contents;

  // An integer of the metadata, `if_missing` where it is absent or no integer.
  std::int64_t integer(std::string_view key, std::int64_t if_missing) const {
    for (const GgufEntry& entry : contents.entries) {
      if (entry.key == key && gguf_type_is_integer(entry.type)) return entry.integer();
    }
    return if_missing;
  }
};

namespace {

Result<GgufPart> open_part(const std::string& path) {
  DUNLIN_ASSIGN(file, MappedFile::open(path));
  DUNLIN_ASSIGN(contents, parse_gguf(file.bytes(), path));
  return GgufPart{std::move(file), std::move(contents)};
}

// All parts of the model that `path`, already opened as `opened`, is one of.
Result<std::vector<GgufPart>> open_all_parts(const std::string& path, GgufPart opened) {
  std::vector<GgufPart> parts;
  const std::int64_t count = opened.integer("split.count", 1);
  if (count <= 1) {
    parts.push_back(std::move(opened));
    return parts;
  }
  const auto name = parse_part_name(path);
  if (!name || name->count != count) {
    return invalid(
        fmt::format("{}: is one of {} parts, but its name does not end in "
                    "-0000N-of-{:05}.gguf, so the others can't be found",
                    path, count, count));
  }
  for (std::uint32_t i = 0; i < name->count; ++i) {
    auto part = open_part(part_path(name->prefix, i + 1, name->count));
    if (!part) {
      if (part.error().code() != StatusCode::kNotFound) {
        return tl::unexpected<Status>(std::move(part).error());
      }
      return fail(StatusCode::kNotFound,
                  fmt::format("{}: part {} of {} is missing: {}", path, i + 1, count,
                              part_path(name->prefix, i + 1, name->count)));
    }
    const std::int64_t number = part->integer("split.no", -1);
    const std::int64_t its_count = part->integer("split.count", -1);
    if (number != i || its_count != count) {
      return invalid(
          fmt::format("{}: says in 'split.no' and 'split.count' that it is part {} of "
                      "{}, not part {} of {} as its name does",
                      part->file.path(), number + 1, its_count, i + 1, count));
    }
    parts.push_back(std::move(*part));
  }
  return parts;
}

}  // namespace

Result<std::shared_ptr<const GgufFile>> GgufFile::open(const std::string& path) {
  if (path.ends_with(".safetensors"))
    return invalid(path + ": is a part of a Hugging Face folder; give the folder");
  DUNLIN_ASSIGN(opened, open_part(path));
  DUNLIN_ASSIGN(parts, open_all_parts(path, std::move(opened)));
  const std::int64_t num_tensors = parts.front().integer("split.tensors.count", -1);
  std::shared_ptr<GgufFile> file(new GgufFile);
  for (GgufPart& part : parts) file->append(std::move(part));
  DUNLIN_TRY(file->finish_tables());
  if (file->num_parts() > 1 && num_tensors >= 0 &&
      num_tensors != static_cast<std::int64_t>(file->tensors_.size())) {
    return invalid(fmt::format("{}: 'split.tensors.count' is {}, and the {} parts have {} tensors",
                               path, num_tensors, file->num_parts(), file->tensors_.size()));
  }
  return std::shared_ptr<const GgufFile>(std::move(file));
}

void GgufFile::append(GgufPart part) {
  for (GgufTensor& tensor : part.contents.tensors) {
    tensor.part_idx = num_parts();
    tensors_.push_back(tensor);
  }
  if (parts_.empty()) {
    entries_ = std::move(part.contents.entries);
    version_ = part.contents.version;
    alignment_ = part.contents.alignment;
  }
  parts_.push_back(std::move(part.file));
}

Outcome GgufFile::finish_tables() {
  entries_by_key_ =
      index_by_name(entries_.size(), [&](std::uint32_t i) { return entries_[i].key; }).order;
  NameIndex tensors =
      index_by_name(tensors_.size(), [&](std::uint32_t i) { return tensors_[i].name; });
  if (tensors.duplicate) {
    const GgufTensor& tensor = tensors_[*tensors.duplicate];
    return invalid(fmt::format("{}: tensor {} is in an earlier part too",
                               parts_[static_cast<std::size_t>(tensor.part_idx)].path(),
                               quote_for_message(tensor.name)));
  }
  tensors_by_name_ = std::move(tensors.order);
  return {};
}

std::uint64_t GgufFile::size_bytes() const {
  std::uint64_t sum = 0;
  for (const MappedFile& part : parts_) sum += part.bytes().size();
  return sum;
}

const GgufEntry* GgufFile::find_entry(std::string_view key) const {
  return find_sorted(entries_, entries_by_key_, key, [](const GgufEntry& e) { return e.key; });
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  return find_sorted(tensors_, tensors_by_name_, name, [](const GgufTensor& t) { return t.name; });
}

tl::unexpected<Status> GgufFile::wrong_type(const GgufEntry& entry, std::string_view wanted) const {
  return invalid(fmt::format("{}: key {} is of type {}, not {} (byte {})", path(),
                             quote_for_message(entry.key), describe(entry), wanted,
                             entry.file_offset));
}

Result<const GgufEntry*> GgufFile::require(std::string_view key) const {
  const GgufEntry* entry = find_entry(key);
  if (entry == nullptr) {
    return fail(StatusCode::kNotFound,
                fmt::format("{}: key {} is missing", path(), quote_for_message(key)));
  }
  return entry;
}

template <typename T>
Result<T> GgufFile::get_integer(std::string_view key) const {
  DUNLIN_ASSIGN(entry, require(key));
  if (!gguf_type_is_integer(entry->type)) return wrong_type(*entry, "an integer");
  const std::int64_t value = entry->integer();
  if (!std::in_range<T>(value)) {
    return invalid(fmt::format("{}: key {} is {}, not from {} to {} (byte {})", path(),
                               quote_for_message(key), value, std::numeric_limits<T>::min(),
                               std::numeric_limits<T>::max(), entry->file_offset));
  }
  return static_cast<T>(value);
}

Result<std::uint32_t> GgufFile::get_u32(std::string_view key) const {
  return get_integer<std::uint32_t>(key);
}
Result<std::int32_t> GgufFile::get_i32(std::string_view key) const {
  return get_integer<std::int32_t>(key);
}
Result<std::uint64_t> GgufFile::get_u64(std::string_view key) const {
  return get_integer<std::uint64_t>(key);
}

Result<float> GgufFile::get_f32(std::string_view key) const {
  DUNLIN_ASSIGN(entry, require(key));
  if (!gguf_type_is_float(entry->type)) return wrong_type(*entry, "a float");
  return static_cast<float>(entry->number());
}

Result<bool> GgufFile::get_bool(std::string_view key) const {
  DUNLIN_ASSIGN(entry, require(key));
  if (entry->type != GgufType::kBool) return wrong_type(*entry, "a bool");
  return entry->boolean();
}

Result<std::string_view> GgufFile::get_string(std::string_view key) const {
  DUNLIN_ASSIGN(entry, require(key));
  if (entry->type != GgufType::kString) return wrong_type(*entry, "a string");
  return entry->string();
}

Result<std::uint32_t> GgufFile::get_u32(std::string_view key, std::uint32_t if_missing) const {
  return has(key) ? get_u32(key) : if_missing;
}
Result<std::uint64_t> GgufFile::get_u64(std::string_view key, std::uint64_t if_missing) const {
  return has(key) ? get_u64(key) : if_missing;
}
Result<std::int32_t> GgufFile::get_i32(std::string_view key, std::int32_t if_missing) const {
  return has(key) ? get_i32(key) : if_missing;
}
Result<float> GgufFile::get_f32(std::string_view key, float if_missing) const {
  return has(key) ? get_f32(key) : if_missing;
}
Result<bool> GgufFile::get_bool(std::string_view key, bool if_missing) const {
  return has(key) ? get_bool(key) : if_missing;
}
Result<std::string_view> GgufFile::get_string(std::string_view key,
                                              std::string_view if_missing) const {
  return has(key) ? get_string(key) : if_missing;
}

Result<GgufArray> GgufFile::get_strings(std::string_view key) const {
  DUNLIN_ASSIGN(entry, require(key));
  if (entry->type != GgufType::kArray || entry->element_type != GgufType::kString) {
    return wrong_type(*entry, "an array of strings");
  }
  return entry->array();
}

Result<GgufArray> GgufFile::get_integers(std::string_view key) const {
  DUNLIN_ASSIGN(entry, require(key));
  if (entry->type != GgufType::kArray || !gguf_type_is_integer(entry->element_type)) {
    return wrong_type(*entry, "an array of integers");
  }
  return entry->array();
}

Result<GgufArray> GgufFile::get_numbers(std::string_view key) const {
  DUNLIN_ASSIGN(entry, require(key));
  if (entry->type != GgufType::kArray ||
      !(gguf_type_is_integer(entry->element_type) || gguf_type_is_float(entry->element_type))) {
    return wrong_type(*entry, "an array of numbers");
  }
  return entry->array();
}

Outcome GgufFile::check_unchanged() const {
  for (const MappedFile& part : parts_) DUNLIN_TRY(part.check_unchanged());
  return {};
}

void GgufFile::drop_pages(const TensorView& tensor) const {
  for (const MappedFile& part : parts_) {
    const std::byte* begin = part.bytes().data();
    if (std::less<>()(tensor.data, begin) ||
        !std::less<>()(tensor.data, begin + part.bytes().size())) {
      continue;
    }
    part.drop_pages(static_cast<std::size_t>(tensor.data - begin),
                    static_cast<std::size_t>(tensor.size_bytes()));
    return;
  }
}

}  // namespace dunlin
