// Any bytes as text, and any bytes as a vocabulary. Byte-level BPE gives valid UTF-8 back;
// untrusted text never becomes a control token; streaming equals a lossy decoding of all bytes at
// once.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "text/byte_chars.h"
#include "text/detokenizer.h"
#include "text/pretokenizer.h"
#include "text/regex_dialect.h"
#include "text/tokenizer_factory.h"

namespace dunlin {
namespace {

// Hands out parts of the input.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto out = static_cast<std::uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return out;
  }
  std::string_view take(std::size_t size) {
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(out.size());
    return out;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

struct OwnedVocab {
  std::vector<std::string> texts;
  Vocab vocab;
};

void add(OwnedVocab& out, std::string text, TokenType type, float score) {
  out.texts.push_back(std::move(text));
  out.vocab.types.push_back(type);
  out.vocab.scores.push_back(score);
}

OwnedVocab sound_vocab(TokenizerKind kind) {
  OwnedVocab out;
  out.vocab.kind = kind;
  const char* digits = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<unsigned char>(byte);
    if (kind == TokenizerKind::kBytePairs) {
      add(out, char_of_byte(c), TokenType::kNormal, 0);
    } else {
      add(out, std::string("<0x") + digits[c / 16] + digits[c % 16] + ">", TokenType::kByte, 0);
    }
  }
  for (const char* text : {"\u2581", "a", "b", "<", "|", "s", ">", "<|", "|>", "ab", "\u2581a"}) {
    if (kind == TokenizerKind::kSentencePiece) add(out, text, TokenType::kNormal, -1);
  }
  add(out, "<|s|>", TokenType::kControl, 0);
  add(out, "ba", TokenType::kUserDefined, 0);
  if (kind == TokenizerKind::kBytePairs) {
    for (const char* text : {"<|", "<|s", "|>", "ab", "abab", "\u0120a"}) {
      add(out, text, TokenType::kNormal, 0);
    }
  }
  return out;
}

void finish(OwnedVocab& out) { out.vocab.tokens.assign(out.texts.begin(), out.texts.end()); }

std::unique_ptr<Tokenizer> sound_tokenizer(TokenizerKind kind, std::string_view pre) {
  static const std::string merges[] = {"< |", "<| s", "| >", "a b", "ab ab", "\u0120 a"};
  OwnedVocab owned = sound_vocab(kind);
  finish(owned);
  owned.vocab.pretokenizer = pre;
  if (kind == TokenizerKind::kBytePairs) {
    owned.vocab.merges.assign(std::begin(merges), std::end(merges));
  }
  return make_tokenizer(owned.vocab).value();
}

std::string stream(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  Detokenizer detokenizer(tokenizer, /*at_text_start=*/true);
  std::string out;
  for (TokenId id : ids) {
    const std::string part = detokenizer.push(id);
    DUNLIN_CHECK(find_broken_utf8(part) == part.size(), "streams valid UTF-8 only");
    out += part;
  }
  return out + detokenizer.finish();
}

void check_text(const Tokenizer& tokenizer, std::string_view text, bool gives_text_back) {
  const auto ids = tokenizer.encode(text, /*trusted=*/false);
  std::string bytes;
  for (TokenId id : ids) {
    DUNLIN_CHECK(id >= 0 && id < tokenizer.vocab_size(), "an id of the vocabulary");
    DUNLIN_CHECK(!tokenizer.is_control(id), "untrusted text names no control token");
    bytes += tokenizer.token_bytes(id);
  }
  if (!gives_text_back) return;
  const std::string streamed = stream(tokenizer, ids);
  DUNLIN_CHECK(streamed == repair_utf8(text), "decoding gives the text back");
}

// Segments of the text, every other one trusted: all of the text comes back, none lost at borders.
void check_segments(const Tokenizer& tokenizer, Input input) {
  std::vector<TextSegment> segments;
  std::string whole;
  bool trusted = (input.byte() & 1) != 0;
  while (!input.rest().empty() && segments.size() < 64) {
    const std::string_view part = input.take(input.byte() % 16);
    segments.push_back({part, trusted});
    whole += part;
    trusted = !trusted;
  }
  std::string bytes;
  for (TokenId id : tokenizer.encode(segments)) bytes += tokenizer.token_bytes(id, true);
  DUNLIN_CHECK(bytes == repair_utf8(whole), "segments lose nothing");
}

// A vocabulary of the input's making: refused, or it works.
void check_vocabulary(Input input) {
  OwnedVocab owned;
  owned.vocab.kind =
      (input.byte() & 1) != 0 ? TokenizerKind::kBytePairs : TokenizerKind::kSentencePiece;
  const std::size_t num_tokens = 1 + input.byte() % 32;
  for (std::size_t i = 0; i < num_tokens; ++i) {
    const std::uint8_t type = input.byte();
    add(owned, std::string(input.take(input.byte() % 8)), static_cast<TokenType>(1 + type % 6),
        static_cast<float>(type));
  }
  finish(owned);
  std::vector<std::string> merges;
  for (std::size_t i = input.byte() % 16; i > 0; --i) {
    const auto token = [&] { return owned.texts[input.byte() % num_tokens]; };
    merges.push_back(token() + " " + token());
  }
  owned.vocab.merges.assign(merges.begin(), merges.end());
  owned.vocab.pretokenizer = "bloom";  // the cheapest to compile
  owned.vocab.unknown_id = 0;
  classify_markers(owned.vocab, {0});
  const auto tokenizer = make_tokenizer(owned.vocab);
  if (!tokenizer) {
    DUNLIN_CHECK(!tokenizer.error().message().empty(), "a refusal says why");
    return;
  }
  const auto ids = (*tokenizer)->encode(input.rest(), true);
  for (TokenId id : ids) {
    DUNLIN_CHECK(id >= 0 && id < (*tokenizer)->vocab_size(), "an id of the vocabulary");
  }
  stream(**tokenizer, ids);
}

// An expression of the input's making: refused, or its pieces join to the text.
void check_expression(Input input) {
  const std::string_view expression[] = {input.take(input.byte() % 48)};
  const auto pretokenizer = PreTokenizer::make(expression);
  if (!pretokenizer) return;
  const std::string text = repair_utf8(input.rest().substr(0, 256));
  std::string joined;
  pretokenizer->split(text, [&](std::string_view piece) {
    DUNLIN_CHECK(!piece.empty(), "pieces are not empty");
    joined += piece;
  });
  DUNLIN_CHECK(joined == text, "pieces join to the text");
}

}  // namespace
}  // namespace dunlin

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dunlin;
  static const auto bpe = sound_tokenizer(TokenizerKind::kBytePairs, "gpt-2");
  static const auto llama = sound_tokenizer(TokenizerKind::kBytePairs, "llama-bpe");
  static const auto deepseek = sound_tokenizer(TokenizerKind::kBytePairs, "deepseek-llm");
  static const auto pieces = sound_tokenizer(TokenizerKind::kSentencePiece, "");
  Input input(data, size);
  switch (input.byte() % 4) {
    case 0:
      check_text(*bpe, input.rest(), true);
      check_text(*llama, input.rest(), true);
      check_text(*deepseek, input.rest(), true);
      // U+2581 comes back as a space.
      check_text(*pieces, input.rest(),
                 input.rest().find("\u2581") == std::string_view::npos &&
                     input.rest().find("ba") == std::string_view::npos);
      break;
    case 1: check_segments(*bpe, input); break;
    case 2: check_vocabulary(input); break;
    default: check_expression(input);
  }
  return 0;
}
