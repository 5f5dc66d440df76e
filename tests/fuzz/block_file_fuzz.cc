// Any bytes as a file of the prefix cache: refused with one line, or a payload of the right size
// within them. Half of the inputs get a right header and sum around a damaged body, so that the
// checks behind those are reached.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "kv/block_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  dunlin::BlockFileId id;
  id.identity.fill(data[0] & 3);
  const std::size_t payload_size = data[1];
  std::vector<std::byte> file(size - 2);
  if (!file.empty()) std::memcpy(file.data(), data + 2, file.size());
  if (data[0] & 0x80 && file.size() >= dunlin::kBlockFileHeaderSize) {
    dunlin::BlockFileId sealed = id;
    sealed.identity.fill(data[0] >> 2 & 3);
    dunlin::seal_block_file(file, sealed);
  }
  const auto payload = dunlin::open_block_file(file, id, payload_size);
  if (!payload) {
    const std::string& message = payload.error().message();
    DUNLIN_CHECK(!message.empty() && message.find('\n') == std::string::npos,
                 "a refusal is one line");
    return 0;
  }
  DUNLIN_CHECK(payload->size() == payload_size &&
                   payload->data() == file.data() + dunlin::kBlockFileHeaderSize,
               "the payload is what stands behind the header");
  return 0;
}
