// GGUF model files, versions 2 and 3, little-endian: typed metadata and a tensor table over a
// read-only memory map. A model in several files ("NAME-00001-of-00003.gguf") opens as one, by any
// of its parts.
//
// Nothing in the file is trusted. Every count, length, offset, type and name is checked before it
// is used, no memory is taken by an unchecked number, and a refusal is one line that names the
// file, the key or tensor, and the byte. What the numbers mean for a model (heads, shapes, needed
// tensors) is for model/config to check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "dunlin/status.h"
#include "tensor/tensor_view.h"

namespace dunlin {

// Types of metadata values, numbered as in the file.
enum class GgufType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};
inline constexpr std::uint32_t kNumGgufTypes = 13;

std::string_view gguf_type_name(GgufType type);  // "u8", "string", "array", ...
bool gguf_type_is_integer(GgufType type);        // bool is not
bool gguf_type_is_float(GgufType type);

// A view of an array value: elements stay in the map, nothing is copied. Valid as long as the
// file. The index must be below size() (DCHECK).
class GgufArray {
 public:
  GgufType element_type() const { return element_type_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  std::string_view string(std::size_t idx) const;  // element_type() == kString
  std::int64_t integer(std::size_t idx) const;     // integer types; u64 saturates
  double number(std::size_t idx) const;            // integer and float types
  bool boolean(std::size_t idx) const;             // kBool

 private:
  friend struct GgufEntry;
  GgufType element_type_ = GgufType::kU8;
  std::size_t size_ = 0;
  const std::byte* data_ = nullptr;            // numbers: the first one, unaligned
  const std::byte* const* strings_ = nullptr;  // strings: each one's length field
};

// One metadata key and its value, as views of the map.
struct GgufEntry {
  std::string_view key;
  GgufType type = GgufType::kU8;
  std::uint64_t file_offset = 0;  // of the key, in its part

  // The value. Ask only for what `type` is (DCHECK).
  std::string_view string() const;
  std::int64_t integer() const;
  double number() const;
  bool boolean() const;
  GgufArray array() const;

  // How the parser fills it in.
  GgufType element_type = GgufType::kU8;
  std::uint64_t count = 1;                  // array: elements; string: bytes
  const std::byte* data = nullptr;          // the value's first byte behind its length fields
  std::vector<const std::byte*> strings{};  // array of strings: each one's length field
};

struct GgufTensor {
  std::string_view name;
  TensorView view;                // shape outermost first: GGUF's ne reversed
  int part_idx = 0;               // which file of a split model
  std::uint64_t file_offset = 0;  // of the data, from that file's start
};

struct GgufPart;

class GgufFile {
 public:
  static Result<std::shared_ptr<const GgufFile>> open(const std::string& path);

  // All below are const, thread-safe, and give views that live as long as this object.

  const std::string& path() const { return parts_.front().path(); }  // the first part
  int num_parts() const { return static_cast<int>(parts_.size()); }
  std::uint32_t version() const { return version_; }
  std::uint32_t alignment() const { return alignment_; }
  std::uint64_t size_bytes() const;  // of all parts

  // Metadata, of the first part. get_x(key): kNotFound where the key is missing. With a second
  // argument, a missing key gives that. A key of another type, or an integer that does not fit,
  // is kInvalidArgument either way. Integers of any width are taken where the value fits; a float
  // is taken from f32 or f64. Messages name the file and the key.
  bool has(std::string_view key) const { return find_entry(key) != nullptr; }
  const GgufEntry* find_entry(std::string_view key) const;  // nullptr: missing
  std::span<const GgufEntry> entries() const { return entries_; }

  Result<std::uint32_t> get_u32(std::string_view key) const;
  Result<std::uint64_t> get_u64(std::string_view key) const;
  Result<std::int32_t> get_i32(std::string_view key) const;
  Result<float> get_f32(std::string_view key) const;
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string_view> get_string(std::string_view key) const;

  Result<std::uint32_t> get_u32(std::string_view key, std::uint32_t if_missing) const;
  Result<std::uint64_t> get_u64(std::string_view key, std::uint64_t if_missing) const;
  Result<std::int32_t> get_i32(std::string_view key, std::int32_t if_missing) const;
  Result<float> get_f32(std::string_view key, float if_missing) const;
  Result<bool> get_bool(std::string_view key, bool if_missing) const;
  Result<std::string_view> get_string(std::string_view key, std::string_view if_missing) const;

  // Arrays; kNotFound where missing, kInvalidArgument where the elements are of another kind.
  Result<GgufArray> get_strings(std::string_view key) const;
  Result<GgufArray> get_integers(std::string_view key) const;
  Result<GgufArray> get_numbers(std::string_view key) const;  // floats or integers

  // Tensors of all parts, in file order. A vocabulary-only file has none.
  std::span<const GgufTensor> tensors() const { return tensors_; }
  const GgufTensor* find_tensor(std::string_view name) const;  // nullptr: missing

  // kDataLoss where a part was shortened or grew since it was opened.
  Outcome check_unchanged() const;

  // The tensor's bytes won't be read soon (MappedFile::drop_pages). A view of another file:
  // nothing.
  void drop_pages(const TensorView& tensor) const;

 private:
  GgufFile() = default;
  void append(GgufPart part);
  Outcome finish_tables();
  template <typename T>
  Result<T> get_integer(std::string_view key) const;
  Result<const GgufEntry*> require(std::string_view key) const;
  tl::unexpected<Status> wrong_type(const GgufEntry& entry, std::string_view wanted) const;

  std::vector<MappedFile> parts_;
  std::vector<GgufEntry> entries_;
  std::vector<GgufTensor> tensors_;
  std::vector<std::uint32_t> entries_by_key_;   // indices, sorted by key
  std::vector<std::uint32_t> tensors_by_name_;  // indices, sorted by name
  std::uint32_t version_ = 0;
  std::uint32_t alignment_ = 0;
};

}  // namespace dunlin
