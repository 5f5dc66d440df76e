// The file of one cached block on disk: 16 tokens' keys and values of all KV groups.
//
//   offset  bytes
//   0       8     "DUNLINKV"
//   8       4     version of this format, 1
//   12      4     size of the header, 160
//   16      8     bytes of the payload
//   24      32    identity: what computed the bits
//   56      32    key of the block (kv/prefix_key.h)
//   88      64    its 16 tokens
//   152     8     XXH3 (64 bits) of the bytes before and of the payload
//   160           the payload: the raw blocks of the groups, in their order
//
// Numbers are in the machine's own order of bytes, as keys and values are; a file of a machine with
// the other one has a wrong version.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "dunlin/status.h"
#include "kv/prefix_key.h"

namespace dunlin {

struct BlockFileId {
  PrefixKey identity{};
  PrefixKey key{};
  std::array<TokenId, kBlockSize> tokens{};
};

inline constexpr std::size_t kBlockFileHeaderSize = 160;

// Fills in the first kBlockFileHeaderSize bytes of `file`; the payload stands behind them already.
void seal_block_file(std::span<std::byte> file, const BlockFileId& id);

// The payload within `file`. Never trusts a byte: kDataLoss where the file is cut, longer or
// shorter than payload_size says, of another version, block or identity, or its sum is wrong.
Result<std::span<const std::byte>> open_block_file(std::span<const std::byte> file,
                                                   const BlockFileId& expected,
                                                   std::size_t payload_size);

}  // namespace dunlin
