// Any bytes as tokenizer.json and tokenizer_config.json, and any text through what they make:
// refused in one line, or every id is the vocabulary's, text streams as valid UTF-8 and is what its
// tokens say. The input is text, tokenizer.json and tokenizer_config.json with a NUL between them.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "text/detokenizer.h"
#include "text/hf_tokenizer.h"

namespace dunlin {
namespace {

// What stands before the next NUL; the rest stays in `input`.
std::string_view take_part(std::string_view& input) {
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::string_view part = input.substr(0, end);
  input.remove_prefix(std::min(input.size(), end + 1));
  return part;
}

void check_refusal(const Status& status) {
  DUNLIN_CHECK(!status.message().empty(), "a refusal says why");
  DUNLIN_CHECK(status.code() == StatusCode::kInvalidArgument, "the file is what is wrong");
}

void check_decoding(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  Detokenizer detokenizer(tokenizer);
  std::string streamed, bytes;
  bool at_start = true;
  for (TokenId id : ids) {
    DUNLIN_CHECK(id >= 0 && id < tokenizer.vocab_size(), "an id of the vocabulary");
    const std::string part = detokenizer.push(id);
    DUNLIN_CHECK(find_broken_utf8(part) == part.size(), "streams valid UTF-8 only");
    streamed += part;
    const std::string first = tokenizer.first_token_bytes(id), other = tokenizer.token_bytes(id);
    bytes += at_start ? first : other;
    at_start = at_start && first.empty() && other.empty();
  }
  streamed += detokenizer.finish();
  std::string whole = repair_utf8(bytes);
  if (tokenizer.strips_trailing_space() && whole.ends_with(' ')) whole.pop_back();
  DUNLIN_CHECK(streamed == whole, "streaming equals decoding all at once");
}

// The text as segments, every other one trusted.
std::vector<TextSegment> segments_of(std::string_view text, std::size_t length) {
  std::vector<TextSegment> segments;
  for (std::size_t pos = 0; pos < text.size(); pos += length) {
    segments.push_back({text.substr(pos, length), segments.size() % 2 == 0});
  }
  return segments;
}

void check(std::string_view input) {
  const std::string_view text = take_part(input).substr(0, 512);
  const std::string_view json = take_part(input);
  const auto config = HfTokenizerConfig::read(
      input.empty() ? std::nullopt : std::optional(take_part(input)), std::nullopt);
  if (!config) check_refusal(config.error());
  const auto made = make_hf_tokenizer(json, config ? *config : HfTokenizerConfig(), {});
  if (!made) return check_refusal(made.error());
  const Tokenizer& tokenizer = **made;
  check_decoding(tokenizer, tokenizer.encode(text, /*trusted=*/true));
  check_decoding(tokenizer, tokenizer.encode(text, /*trusted=*/false));
  check_decoding(tokenizer, tokenizer.encode(segments_of(text, 5)));
  std::vector<TokenId> all;
  for (TokenId id = 0; id < std::min(tokenizer.vocab_size(), 64); ++id) all.push_back(id);
  check_decoding(tokenizer, all);
}

}  // namespace
}  // namespace dunlin

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  dunlin::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
