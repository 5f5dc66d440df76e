#include "tensor/buffer.h"

#include <sys/mman.h>

#include <utility>

#include "base/check.h"

namespace dunlin {

// Anonymous maps are zero pages until touched, so a large pool costs memory only where it is
// used, and huge pages cut the TLB misses of streaming reads.
Buffer::Buffer(std::size_t size_bytes) : size_(size_bytes) {
  if (size_bytes == 0) return;
  void* memory = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
  DUNLIN_CHECK(memory != MAP_FAILED, "out of memory");
  data_ = static_cast<std::byte*>(memory);
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  if (size_bytes >= kHugePage) madvise(memory, size_bytes, MADV_HUGEPAGE);
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, size_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace dunlin
