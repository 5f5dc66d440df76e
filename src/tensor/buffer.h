// An owning, zero-initialised block of memory, aligned to a cache line (64 bytes), or to huge
// pages where it is larger than one. Move-only.
#pragma once

#include <cstddef>
#include <span>

namespace dunlin {

class Buffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  Buffer() = default;
  explicit Buffer(std::size_t size_bytes);  // aborts where the system has no memory left
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  template <typename T>
  T* as() { return reinterpret_cast<T*>(data_); }
  template <typename T>
  const T* as() const { return reinterpret_cast<const T*>(data_); }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace dunlin
