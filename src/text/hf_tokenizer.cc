#include "text/hf_tokenizer.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "text/added_tokens.h"
#include "text/hf_decoder.h"
#include "text/hf_file.h"
#include "text/hf_model_load.h"
#include "text/hf_normalizer.h"
#include "text/hf_post_processor.h"
#include "text/hf_pretokenizer.h"
#include "text/hf_vocab.h"
#include "text/joined_text.h"
#include "text/json_view.h"

namespace dunlin {
namespace {

using namespace hf;  // NOLINT: this file puts its parts together

struct Parts {
  LoadedModel model;
  std::vector<TokenType> types;
  hf::Normalizer normalizer;
  hf::PreTokenizer pretokenizer;
  hf::Decoder decoder;
  std::unique_ptr<AddedTokenMatcher> raw_tokens;         // looked for in the text as it is
  std::unique_ptr<AddedTokenMatcher> normalized_tokens;  // and in the normalized text
  AddedAround around;
  // Of tokens whose text the normalizer changes: they are decoded as they are looked for.
  std::unordered_map<TokenId, std::string> normalized_texts;
  std::vector<TokenId> eos_ids;
  TokenId bos_id = -1;
  TokenId eos_id = -1;
};

// The ranges of text[begin, end), counted from `begin`.
std::vector<TrustRange> clip(std::span<const TrustRange> ranges, std::size_t begin,
                             std::size_t end) {
  std::vector<TrustRange> out;
  auto range = std::partition_point(ranges.begin(), ranges.end(),
                                    [&](const TrustRange& r) { return r.end <= begin; });
  for (; range != ranges.end(); ++range) {
    out.push_back({std::min(range->end, end) - begin, range->trusted});
    if (range->end >= end) break;
  }
  return out;
}

class HfTokenizer final : public Tokenizer {
 public:
  explicit HfTokenizer(Parts parts) : parts_(std::move(parts)) {}

  using Tokenizer::encode;
  std::vector<TokenId> encode(std::span<const TextSegment> segments) const override {
    std::string storage;
    const JoinedText joined = join_segments(segments, storage);
    EncodeScratch scratch;
    std::vector<TokenId> ids;
    ids.reserve(joined.text.size() / 4 + 8);
    parts_.raw_tokens->split(joined.text, joined.ranges, [&](AddedTokenMatcher::Part part) {
      if (part.id >= 0) return ids.push_back(part.id);
      encode_section(joined, part.begin, part.end, scratch, ids);
    });
    return ids;
  }

  std::string token_bytes(TokenId id, bool render_special) const override {
    return bytes_of(id, render_special, /*is_first=*/false);
  }
  std::string first_token_bytes(TokenId id, bool render_special) const override {
    std::string bytes = bytes_of(id, render_special, /*is_first=*/true);
    if (strips_leading_space() && bytes.starts_with(' ')) bytes.erase(0, 1);
    return bytes;
  }

  int vocab_size() const override { return parts_.model.table->size(); }
  bool is_control(TokenId id) const override {
    return is_id(id) && type(id) == TokenType::kControl;
  }
  std::span<const TokenId> prefix_ids() const override { return parts_.around.prefix_ids; }
  std::span<const TokenId> suffix_ids() const override { return parts_.around.suffix_ids; }
  std::span<const TokenId> eos_ids() const override { return parts_.eos_ids; }
  TokenId bos_id() const override { return parts_.bos_id; }
  TokenId eos_id() const override { return parts_.eos_id; }
  bool strips_leading_space() const override { return parts_.decoder.strips_leading_space(); }
  bool strips_trailing_space() const override { return parts_.decoder.strips_trailing_space(); }

 private:
  bool is_id(TokenId id) const { return id >= 0 && id < vocab_size(); }
  TokenType type(TokenId id) const { return parts_.types[static_cast<std::size_t>(id)]; }

  std::string bytes_of(TokenId id, bool render_special, bool is_first) const {
    if (!is_id(id) || type(id) == TokenType::kUnused) return {};
    const std::string_view text = parts_.model.table->text(id);
    if (is_control(id)) return render_special ? std::string(text) : std::string();
    const auto changed = parts_.normalized_texts.find(id);
    return parts_.decoder.decode(changed == parts_.normalized_texts.end() ? text : changed->second,
                                 is_first);
  }

  // Text between added tokens, a text of its own for the normalizer.
  void encode_section(const JoinedText& joined, std::size_t begin, std::size_t end,
                      EncodeScratch& scratch, std::vector<TokenId>& ids) const {
    const std::string_view section = joined.text.substr(begin, end - begin);
    if (parts_.normalizer.empty() && parts_.normalized_tokens->empty()) {
      return encode_plain({section, begin == 0}, scratch, ids);
    }
    NormalizedText normalized{std::string(section), clip(joined.ranges, begin, end), begin == 0};
    parts_.normalizer.apply(normalized, scratch.regex);
    const std::string_view text = normalized.text;
    parts_.normalized_tokens->split(text, normalized.ranges, [&](AddedTokenMatcher::Part part) {
      if (part.id >= 0) return ids.push_back(part.id);
      encode_plain(
          {text.substr(part.begin, part.end - part.begin), normalized.at_start && part.begin == 0},
          scratch, ids);
    });
  }

  void encode_plain(Piece text, EncodeScratch& scratch, std::vector<TokenId>& ids) const {
    parts_.pretokenizer.split(text, scratch.regex, [&](Piece piece) {
      if (!piece.text.empty()) parts_.model.model->encode(piece.text, scratch, ids);
    });
  }

  Parts parts_;
};

std::unique_ptr<AddedTokenMatcher> make_matcher(const HfVocab& vocab, bool normalized,
                                                Parts& parts) {
  std::vector<AddedToken> tokens;
  std::vector<std::string> texts;
  std::unordered_set<std::string> seen;
  ByteRegex::Scratch scratch;
  for (const AddedToken& token : vocab.added) {
    if (token.normalized != normalized) continue;
    NormalizedText text{token.content, {}, true};
    if (normalized) parts.normalizer.apply(text, scratch);
    if (text.text != token.content) parts.normalized_texts.emplace(token.id, text.text);
    if (!text.text.empty() && !seen.insert(text.text).second) continue;
    tokens.push_back(token);
    texts.push_back(std::move(text.text));
  }
  return std::make_unique<AddedTokenMatcher>(std::move(tokens), std::move(texts));
}

Result<std::unique_ptr<Tokenizer>> make(std::string_view tokenizer_json,
                                        const HfTokenizerConfig& config,
                                        std::span<const TokenId> more_eos_ids) {
  DUNLIN_ASSIGN(file, TokenizerFile::parse(tokenizer_json));
  DUNLIN_ASSIGN(vocab, HfVocab::make(file, config, more_eos_ids));
  const JsonView root(file.root, "tokenizer.json");
  Parts parts;
  DUNLIN_ASSIGN(model, load_model(file, vocab));
  DUNLIN_ASSIGN(normalizer, hf::Normalizer::make(root));
  DUNLIN_ASSIGN(pretokenizer, hf::PreTokenizer::make(root));
  DUNLIN_ASSIGN(decoder, hf::Decoder::make(root));
  DUNLIN_ASSIGN(around, read_added_around(root, vocab, config));
  parts.model = std::move(model);
  parts.normalizer = std::move(normalizer);
  parts.pretokenizer = std::move(pretokenizer);
  parts.decoder = std::move(decoder);
  parts.around = std::move(around);
  parts.raw_tokens = make_matcher(vocab, false, parts);
  parts.normalized_tokens = make_matcher(vocab, true, parts);
  parts.types = std::move(vocab.types);
  parts.eos_ids = std::move(vocab.eos_ids);
  parts.bos_id = vocab.bos_id;
  parts.eos_id = vocab.eos_id;
  return std::make_unique<HfTokenizer>(std::move(parts));
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_hf_tokenizer(std::string_view tokenizer_json,
                                                     const HfTokenizerConfig& config,
                                                     std::span<const TokenId> more_eos_ids) {
  auto made = make(tokenizer_json, config, more_eos_ids);
  if (made || made.error().message().starts_with("tokenizer")) return made;
  return tl::unexpected(made.error().with_prefix("tokenizer.json"));
}

}  // namespace dunlin
