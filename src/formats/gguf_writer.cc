#include "formats/gguf_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/write_all.h"
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

tl::unexpected<Status> cannot_write(const std::string& path, int error) {
  return invalid(
      fmt::format("{}: cannot write it: {}", path, std::generic_category().message(error)));
}

// The file while it is made. Goes with the object unless it was renamed.
class PartFile {
 public:
  explicit PartFile(std::string path) : path_(std::move(path)) {}
  ~PartFile() {
    if (fd_ < 0) return;
    if (is_ours_) ::unlink(path_.c_str());
    ::close(fd_);
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  // Takes over what a writer that was interrupted has left, but follows no link and takes no file
  // from a writer that still runs (EWOULDBLOCK). False, with errno, where it can't.
  bool open() {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    // Some network file systems have no locks.
    is_ours_ = fd_ >= 0 && (::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
    return is_ours_;
  }
  bool clear() { return ::ftruncate(fd_, 0) == 0; }
  bool write(std::string_view bytes) { return write_all(fd_, bytes); }
  // Fails where `to` is there (EEXIST), as far as the file system can tell.
  bool rename(const std::string& to) {
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0 &&
        (errno != EINVAL || ::rename(path_.c_str(), to.c_str()) != 0))
      return false;
    is_ours_ = false;
    return true;
  }

 private:
  std::string path_;
  int fd_ = -1;
  bool is_ours_ = false;
};

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
void GgufWriter::set_u8s(std::string_view key, std::string_view bytes) {
  put_numbers(begin_value(key, GgufType::kArray), GgufType::kU8, std::span(bytes));
}
void GgufWriter::set_f32s(std::string_view key, std::span<const float> values) {
  put_numbers(begin_value(key, GgufType::kArray), GgufType::kF32, values);
}

void GgufWriter::add_tensor(std::string_view name, DType dtype, std::span<const std::int64_t> shape,
                            std::vector<std::byte> bytes) {
  const std::size_t given = bytes.size();
  add_tensor(name, dtype, shape, [bytes = std::move(bytes)](std::span<std::byte> out) {
    std::memcpy(out.data(), bytes.data(), out.size());
    return Outcome();
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
    const Outcome filled = tensor.fill(std::span(out).subspan(at, tensor.size_bytes));
    DUNLIN_CHECK(filled.has_value(), "a tensor could not be made");
    at += padded(tensor.size_bytes);
  }
  return out;
}

Outcome GgufWriter::write(const std::string& path) const {
  // Without an error code the question itself would throw where a folder can't be searched.
  std::error_code ignored;
  const auto is_there = [&] { return std::filesystem::exists(path, ignored); };
  const auto taken = [&] {
    return fail(StatusCode::kAlreadyExists, path + ": is already there; give another name");
  };
  if (is_there()) return taken();
  PartFile part(path + ".part");
  if (!part.open()) {
    if (errno != EWOULDBLOCK) return cannot_write(path + ".part", errno);
    return fail(StatusCode::kAlreadyExists,
                path + ".part: another program is writing it; wait for it or give another name");
  }
  if (is_there()) return taken();  // another writer has just ended: this is its file
  if (!part.clear() || !part.write(header())) return cannot_write(path, errno);
  std::string bytes;
  for (const Tensor& tensor : tensors_) {
    bytes.assign(padded(tensor.size_bytes), '\0');
    DUNLIN_TRY(tensor.fill(std::as_writable_bytes(std::span(bytes)).first(tensor.size_bytes)));
    if (!part.write(bytes)) return cannot_write(path, errno);
  }
  if (is_there()) return taken();  // it came meanwhile
  if (part.rename(path)) return {};
  if (errno == EEXIST) return taken();
  return cannot_write(path, errno);
}

}  // namespace dunlin
