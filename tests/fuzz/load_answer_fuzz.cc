// Any bytes as a server's answer to a benchmark's request, whole and cut in two: what is recorded
// is the same, and its figures are possible.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "loadgen/answer_reader.h"

namespace dunlin::loadgen {
namespace {

RequestRecord read(std::string_view first, std::string_view second, int status) {
  RequestRecord record;
  AnswerReader reader(record);
  if (reader.push(status, first, 1)) reader.push(status, second, 1);
  reader.finish(status);
  return record;
}

void run(std::string_view bytes) {
  const std::size_t cut = bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]) % bytes.size();
  const int status = !bytes.empty() && bytes.back() == 'x' ? 429 : 200;
  const RequestRecord whole = read(bytes, {}, status);
  const RequestRecord parts = read(bytes.substr(0, cut), bytes.substr(cut), status);
  DUNLIN_CHECK(whole.failure == parts.failure, "a cut changed what failed");
  DUNLIN_CHECK(whole.num_pieces() == parts.num_pieces(), "a cut changed the pieces");
  DUNLIN_CHECK(whole.output_tokens == parts.output_tokens, "a cut changed the tokens");
  DUNLIN_CHECK(whole.output_tokens >= 0 && whole.prompt_tokens >= 0 && whole.cached_tokens >= 0,
               "a negative number of tokens");
  DUNLIN_CHECK(whole.is_ok() == whole.message.empty(), "a failure has a reason");
  DUNLIN_CHECK(whole.message.size() < 1000, "a message has an end");
}

}  // namespace
}  // namespace dunlin::loadgen

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  dunlin::loadgen::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
