#include "kv/block_file.h"

#include <cstring>

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.h"

namespace dunlin {
namespace {

constexpr std::uint32_t kVersion = 1;

struct Header {
  char magic[8] = {'D', 'U', 'N', 'L', 'I', 'N', 'K', 'V'};
  std::uint32_t version = kVersion;
  std::uint32_t header_size = kBlockFileHeaderSize;
  std::uint64_t payload_size = 0;
  PrefixKey identity{};
  PrefixKey key{};
  std::array<TokenId, kBlockSize> tokens{};
  std::uint64_t checksum = 0;
};
static_assert(sizeof(Header) == kBlockFileHeaderSize && std::is_trivially_copyable_v<Header>);
constexpr std::size_t kSummed = offsetof(Header, checksum);

std::uint64_t checksum_of(std::span<const std::byte> file) {
  const auto payload = file.subspan(kBlockFileHeaderSize);
  const std::uint64_t head = XXH3_64bits(file.data(), kSummed);
  return XXH3_64bits_withSeed(payload.data(), payload.size(), head);
}

}  // namespace

void seal_block_file(std::span<std::byte> file, const BlockFileId& id) {
  DUNLIN_CHECK(file.size() >= kBlockFileHeaderSize, "a block file has a header");
  Header header;
  header.payload_size = file.size() - kBlockFileHeaderSize;
  header.identity = id.identity;
  header.key = id.key;
  header.tokens = id.tokens;
  std::memcpy(file.data(), &header, sizeof header);
  header.checksum = checksum_of(file);
  std::memcpy(file.data(), &header, sizeof header);
}

Result<std::span<const std::byte>> open_block_file(std::span<const std::byte> file,
                                                   const BlockFileId& expected,
                                                   std::size_t payload_size) {
  const auto wrong = [](std::string what) { return fail(StatusCode::kDataLoss, std::move(what)); };
  if (file.size() != kBlockFileHeaderSize + payload_size) {
    return wrong(
        fmt::format("it has {} bytes, not {}", file.size(), kBlockFileHeaderSize + payload_size));
  }
  Header header;
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.magic, Header().magic, sizeof header.magic) != 0 ||
      header.header_size != kBlockFileHeaderSize)
    return wrong("it is no file of the prefix cache");
  if (header.version != kVersion) return wrong("it is of another version");
  if (header.payload_size != payload_size) return wrong("it holds blocks of another size");
  if (header.identity != expected.identity) return wrong("it is of another model");
  if (header.key != expected.key || header.tokens != expected.tokens)
    return wrong("it holds other tokens than its name says");
  if (header.checksum != checksum_of(file)) return wrong("its checksum is wrong");
  return file.subspan(kBlockFileHeaderSize);
}

}  // namespace dunlin
