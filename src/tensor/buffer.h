// An owning, zero-initialised block of memory, aligned to a cache line (64 bytes). Move-only.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace dunlin {

class Buffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  Buffer() = default;
  explicit Buffer(std::size_t size_bytes);  // std::bad_alloc where the system has no memory left
  // Buffers of these sizes, one behind the other from a huge page's start, so that small ones lie
  // in huge pages too. Their memory is given back with the last of them.
  static std::vector<Buffer> in_one_block(std::span<const std::size_t> sizes);
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  std::shared_ptr<std::byte> owner_;  // of the block that data_ is in
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace dunlin
