#include "formats/gguf_parse.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/quote.h"
#include "formats/gguf_cursor.h"
#include "formats/gguf_dtypes.h"

namespace dunlin {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF values are read in place");

constexpr std::uint64_t kMaxRank = 4;
// The smallest entry of each kind bounds how many can be in the bytes that are left: a key is at
// least its length, one byte, a type and a one-byte value; a tensor its name, rank, one dimension,
// type and offset; a string its length.
constexpr std::uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr std::uint64_t kMinStringBytes = 8;

// Bytes of one value of a fixed-size type; 0 for strings and arrays.
std::uint64_t value_bytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool: return 1;
    case GgufType::kU16:
    case GgufType::kI16: return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32: return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64: return 8;
    case GgufType::kString:
    case GgufType::kArray: return 0;
  }
  return 0;
}

// a * b where it fits into 63 bits: sizes are handled as int64 later.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (b != 0 && a > kMax / b) return std::nullopt;
  return a * b;
}

class Parser : private GgufCursor {
 public:
  using GgufCursor::GgufCursor;

  Result<GgufContents> parse() {
    DUNLIN_TRY(parse_header());
    for (std::uint64_t i = 0; i < num_keys_; ++i) DUNLIN_TRY(parse_key(i));
    DUNLIN_TRY(check_keys());
    for (std::uint64_t i = 0; i < num_tensors_; ++i) DUNLIN_TRY(parse_tensor(i));
    DUNLIN_TRY(place_tensors());
    return std::move(contents_);
  }

 private:
  Outcome parse_header() {
    if (left() < 4) return fail_at(0, "is not a GGUF file: too short", StatusCode::kDataLoss);
    const std::string_view magic(reinterpret_cast<const char*>(bytes_.data()), 4);
    if (magic == "FUGG") return fail_at(0, "is a big-endian GGUF file, which is not supported");
    if (magic != "GGUF") {
      return fail_at(
          0, fmt::format("is not a GGUF file: it starts with {}", quote_for_message(magic)));
    }
    at_ = 4;
    DUNLIN_ASSIGN(version, read<std::uint32_t>("the version"));
    // 2 and 3 with their bytes reversed have nothing in the low half.
    if (version != 0 && (version & 0xFFFF) == 0) {
      return fail_at(4,
                     "is a big-endian GGUF file, which is not supported: convert it to "
                     "little-endian");
    }
    if (version != 2 && version != 3) {
      return fail_at(4,
                     fmt::format("has GGUF version {}; versions 2 and 3 are supported", version));
    }
    contents_.version = version;
    DUNLIN_ASSIGN(num_tensors, read<std::uint64_t>("the number of tensors"));
    DUNLIN_ASSIGN(num_keys, read<std::uint64_t>("the number of metadata keys"));
    DUNLIN_TRY(check_count(8, "tensors", num_tensors, kMaxGgufTensors, kMinTensorBytes));
    DUNLIN_TRY(check_count(16, "metadata keys", num_keys, kMaxGgufKeys, kMinKeyBytes));
    num_tensors_ = num_tensors;
    num_keys_ = num_keys;
    return {};
  }

  Outcome check_count(std::uint64_t offset, std::string_view what, std::uint64_t count,
                      std::uint64_t limit, std::uint64_t min_bytes) {
    if (count > limit || count > left() / min_bytes) {
      return fail_at(offset,
                     fmt::format("claims {} {}, and its {} bytes have room for at most {}", count,
                                 what, bytes_.size(), std::min(limit, left() / min_bytes)));
    }
    return {};
  }

  Result<GgufType> read_type(const GgufEntry& entry, std::string_view reading) {
    const std::uint64_t start = at_;
    DUNLIN_ASSIGN(number, read<std::uint32_t>(reading));
    if (number >= kNumGgufTypes) {
      return fail_at(start, fmt::format("key {} has the unknown value type {}",
                                        quote_for_message(entry.key), number));
    }
    return static_cast<GgufType>(number);
  }

  Outcome parse_key(std::uint64_t idx) {
    GgufEntry entry;
    entry.file_offset = at_;
    DUNLIN_ASSIGN(key, read_name(fmt::format("the name of key {} of {}", idx + 1, num_keys_),
                                 kMaxGgufKeyBytes));
    entry.key = key;
    DUNLIN_ASSIGN(type, read_type(entry, "the type of a metadata value"));
    entry.type = type;
    if (type == GgufType::kArray) {
      DUNLIN_TRY(parse_array(entry));
    } else if (type == GgufType::kString) {
      DUNLIN_ASSIGN(text, read_string(fmt::format("the string of key {}", quote_for_message(key)),
                                      bytes_.size()));
      entry.count = text.size();
      entry.data = reinterpret_cast<const std::byte*>(text.data());
    } else {
      DUNLIN_TRY(take_numbers(entry, type));
    }
    contents_.entries.push_back(std::move(entry));
    return {};
  }

  // entry.count numbers of `type`, which has a fixed size.
  Outcome take_numbers(GgufEntry& entry, GgufType type) {
    const std::uint64_t size = value_bytes(type);
    if (entry.count > left() / size) {
      return fail_at(at_, fmt::format("key {} claims {} values of {} bytes, and {} bytes are left "
                                      "in the file",
                                      quote_for_message(entry.key), entry.count, size, left()));
    }
    entry.data = bytes_.data() + at_;
    if (type == GgufType::kBool) {
      for (std::uint64_t i = 0; i < entry.count; ++i) {
        if (std::to_integer<unsigned>(entry.data[i]) <= 1) continue;
        return fail_at(at_ + i, fmt::format("key {} has a bool that is neither 0 nor 1",
                                            quote_for_message(entry.key)));
      }
    }
    at_ += entry.count * size;
    return {};
  }

  Outcome parse_array(GgufEntry& entry) {
    DUNLIN_ASSIGN(element_type, read_type(entry, "the type of an array's elements"));
    entry.element_type = element_type;
    const std::uint64_t start = at_;
    DUNLIN_ASSIGN(count, read<std::uint64_t>("the length of an array"));
    entry.count = count;
    if (element_type == GgufType::kArray) {
      return fail_at(start, fmt::format("key {} is an array of arrays, which is not supported",
                                        quote_for_message(entry.key)));
    }
    if (element_type != GgufType::kString) return take_numbers(entry, element_type);
    if (count > left() / kMinStringBytes) {
      return fail_at(start, fmt::format("key {} claims {} strings, and {} bytes are left in the "
                                        "file",
                                        quote_for_message(entry.key), count, left()));
    }
    entry.strings.reserve(count);
    const std::string reading = fmt::format("a string of key {}", quote_for_message(entry.key));
    for (std::uint64_t i = 0; i < count; ++i) {
      entry.strings.push_back(bytes_.data() + at_);
      DUNLIN_TRY(read_string(reading, bytes_.size()));
    }
    return {};
  }

  Outcome check_keys() {
    const auto& entries = contents_.entries;
    const NameIndex index =
        index_by_name(entries.size(), [&](std::uint32_t i) { return entries[i].key; });
    if (index.duplicate) {
      const GgufEntry& entry = entries[*index.duplicate];
      return fail_at(entry.file_offset,
                     fmt::format("key {} is there twice", quote_for_message(entry.key)));
    }
    for (const GgufEntry& entry : entries) {
      if (entry.key != "general.alignment") continue;
      const std::int64_t value = gguf_type_is_integer(entry.type) ? entry.integer() : 0;
      const auto alignment = static_cast<std::uint64_t>(value);
      if (value <= 0 || alignment > kMaxGgufAlignment || !std::has_single_bit(alignment)) {
        return fail_at(entry.file_offset,
                       "key 'general.alignment' is no power of two from 1 to "
                       "1048576");
      }
      contents_.alignment = static_cast<std::uint32_t>(alignment);
    }
    return {};
  }

  Outcome parse_tensor(std::uint64_t idx) {
    GgufTensor tensor;
    const std::uint64_t start = at_;
    DUNLIN_ASSIGN(name, read_name(fmt::format("the name of tensor {} of {}", idx + 1, num_tensors_),
                                  kMaxGgufNameBytes));
    tensor.name = name;
    const std::string what = "tensor " + quote_for_message(name);
    DUNLIN_ASSIGN(rank, read<std::uint32_t>(what));
    if (rank < 1 || rank > kMaxRank) {
      return fail_at(start, fmt::format("{} has {} dimensions, not 1 to {}", what, rank, kMaxRank));
    }
    std::array<std::uint64_t, kMaxRank> ne = {1, 1, 1, 1};  // innermost first
    for (std::uint32_t i = 0; i < rank; ++i) {
      DUNLIN_ASSIGN(size, read<std::uint64_t>(what));
      ne[i] = size;
    }
    DUNLIN_ASSIGN(type, read<std::uint32_t>(what));
    DUNLIN_ASSIGN(offset, read<std::uint64_t>(what));
    DUNLIN_ASSIGN(dtype, stored_dtype(type, start, what));
    tensor.view.dtype = dtype;
    tensor.view.rank = static_cast<int>(rank);
    tensor.view.shape.fill(1);
    for (std::uint32_t i = 0; i < rank; ++i) {
      tensor.view.shape[i] = static_cast<std::int64_t>(ne[rank - 1 - i]);
    }
    DUNLIN_TRY(check_shape(ne, dtype, start, what));
    if (offset % contents_.alignment != 0) {
      return fail_at(start, fmt::format("{} is at data offset {}, which is no multiple of the "
                                        "alignment {}",
                                        what, offset, contents_.alignment));
    }
    tensor.file_offset = offset;  // from the data's start, until place_tensors()
    table_offsets_.push_back(start);
    contents_.tensors.push_back(tensor);
    return {};
  }

  Result<DType> stored_dtype(std::uint32_t number, std::uint64_t start, const std::string& what) {
    if (const std::optional<DType> dtype = dtype_of_gguf_number(number)) return *dtype;
    const std::string_view name = gguf_number_name(number);
    if (name.empty())
      return fail_at(start, fmt::format("{} has the unknown type {}", what, number));
    return fail_at(start, fmt::format("{} has type {}, which is not supported", what, name),
                   StatusCode::kUnimplemented);
  }

  // The tensor's bytes fit into the file wherever they are: so no later product can wrap.
  Outcome check_shape(const std::array<std::uint64_t, kMaxRank>& ne, DType dtype,
                      std::uint64_t start, const std::string& what) {
    const DTypeInfo& info = dtype_info(dtype);
    const auto block_size = static_cast<std::uint64_t>(info.block_size);
    std::optional<std::uint64_t> num_elements = 1;
    for (const std::uint64_t size : ne) {
      if (size == 0) return fail_at(start, fmt::format("{} has a dimension of 0", what));
      if (num_elements) num_elements = product(*num_elements, size);
    }
    std::optional<std::uint64_t> size_bytes;
    if (num_elements) {
      size_bytes =
          product(*num_elements / block_size, static_cast<std::uint64_t>(info.block_bytes));
    }
    if (!size_bytes || *size_bytes > bytes_.size()) {
      return fail_at(start,
                     fmt::format("{} of {} x {} x {} x {} elements does not fit into the "
                                 "file of {} bytes",
                                 what, ne[0], ne[1], ne[2], ne[3], bytes_.size()),
                     StatusCode::kDataLoss);
    }
    if (ne[0] % block_size != 0) {
      return fail_at(start, fmt::format("{} has rows of {} elements, which are no whole {} blocks "
                                        "of {}",
                                        what, ne[0], info.name, block_size));
    }
    return {};
  }

  Outcome place_tensors() {
    const std::uint64_t alignment = contents_.alignment;
    const std::uint64_t data_start = (at_ + alignment - 1) / alignment * alignment;
    auto& tensors = contents_.tensors;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto size = static_cast<std::uint64_t>(tensors[i].view.size_bytes());
      const std::uint64_t offset = tensors[i].file_offset;
      const std::uint64_t room = bytes_.size() > data_start ? bytes_.size() - data_start : 0;
      if (offset > room || size > room - offset) {
        return fail_at(table_offsets_[i],
                       fmt::format("tensor {} has {} bytes at data offset {}, past the end of the "
                                   "file ({} bytes of data); its download or copy is incomplete",
                                   quote_for_message(tensors[i].name), size, offset, room),
                       StatusCode::kDataLoss);
      }
      tensors[i].file_offset = data_start + offset;
      tensors[i].view.data = bytes_.data() + data_start + offset;
    }
    DUNLIN_TRY(check_names());
    return check_overlaps();
  }

  Outcome check_names() {
    const auto& tensors = contents_.tensors;
    const NameIndex index =
        index_by_name(tensors.size(), [&](std::uint32_t i) { return tensors[i].name; });
    if (!index.duplicate) return {};
    return fail_at(
        table_offsets_[*index.duplicate],
        fmt::format("tensor {} is there twice", quote_for_message(tensors[*index.duplicate].name)));
  }

  Outcome check_overlaps() {
    const auto& tensors = contents_.tensors;
    std::vector<std::uint32_t> order(tensors.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return tensors[a].file_offset < tensors[b].file_offset;
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const GgufTensor& before = tensors[order[i - 1]];
      const GgufTensor& tensor = tensors[order[i]];
      const auto size = static_cast<std::uint64_t>(before.view.size_bytes());
      if (before.file_offset + size <= tensor.file_offset) continue;
      return fail_at(table_offsets_[order[i]],
                     fmt::format("tensors {} and {} share bytes", quote_for_message(before.name),
                                 quote_for_message(tensor.name)));
    }
    return {};
  }

  std::uint64_t num_keys_ = 0;
  std::uint64_t num_tensors_ = 0;
  std::vector<std::uint64_t> table_offsets_;  // where each tensor's entry is, for messages
  GgufContents contents_;
};

}  // namespace

NameIndex index_by_name(std::size_t count, FunctionRef<std::string_view(std::uint32_t)> name) {
  NameIndex index;
  index.order.resize(count);
  std::iota(index.order.begin(), index.order.end(), 0u);
  std::sort(index.order.begin(), index.order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::string_view name_a = name(a), name_b = name(b);
    return name_a != name_b ? name_a < name_b : a < b;
  });
  for (std::size_t i = 1; i < count; ++i) {
    if (name(index.order[i - 1]) == name(index.order[i])) index.duplicate = index.order[i];
  }
  return index;
}

Result<GgufContents> parse_gguf(std::span<const std::byte> bytes, std::string_view path) {
  return Parser(bytes, path).parse();
}

}  // namespace dunlin
