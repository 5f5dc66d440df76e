#include "tensor/buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <utility>

namespace dunlin {
namespace {

// Anonymous maps are zero pages until touched, so a large pool costs memory only where it is used.
std::shared_ptr<std::byte> map_memory(std::size_t size_bytes) {
  void* memory =
      mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory),
          [size_bytes](std::byte* data) { munmap(data, size_bytes); }};
}

// They cut the TLB misses of streaming reads, and the page faults of the first write.
void ask_for_huge_pages(std::byte* data, std::size_t size_bytes) {
  if (size_bytes >= Buffer::kHugePage) madvise(data, size_bytes, MADV_HUGEPAGE);
}

std::size_t round_up(std::size_t size, std::size_t step) { return (size + step - 1) / step * step; }

}  // namespace

Buffer::Buffer(std::size_t size_bytes) : size_(size_bytes) {
  if (size_bytes == 0) return;
  owner_ = map_memory(size_bytes);
  data_ = owner_.get();
  ask_for_huge_pages(data_, size_bytes);
}

std::vector<Buffer> Buffer::in_one_block(std::span<const std::size_t> sizes) {
  std::vector<Buffer> buffers(sizes.size());
  std::size_t total = 0;
  for (const std::size_t size : sizes) total += round_up(size, kAlignment);
  if (total == 0) return buffers;
  // With room to begin at a huge page and to end with a whole one.
  const std::size_t room = total < kHugePage ? 0 : round_up(total, kHugePage) - total + kHugePage;
  const std::shared_ptr<std::byte> owner = map_memory(total + room);
  std::byte* data = owner.get();
  if (room > 0) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    data += round_up(address, kHugePage) - address;
    ask_for_huge_pages(data, round_up(total, kHugePage));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) continue;
    buffers[i].owner_ = owner;
    buffers[i].data_ = data;
    buffers[i].size_ = sizes[i];
    data += round_up(sizes[i], kAlignment);
  }
  return buffers;
}

Buffer::Buffer(Buffer&& other) noexcept
    : owner_(std::move(other.owner_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(owner_, other.owner_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace dunlin
