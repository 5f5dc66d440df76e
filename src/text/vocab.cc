#include "text/vocab.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/quote.h"
#include "formats/gguf.h"
#include "text/pretokenizer_table.h"

namespace dunlin {
namespace {

constexpr const char* kModelKey = "tokenizer.ggml.model";
constexpr const char* kTokensKey = "tokenizer.ggml.tokens";
constexpr const char* kTypesKey = "tokenizer.ggml.token_type";
constexpr const char* kScoresKey = "tokenizer.ggml.scores";
constexpr const char* kMergesKey = "tokenizer.ggml.merges";
constexpr const char* kPreKey = "tokenizer.ggml.pre";
// More than any model has; keeps ids and byte offsets in 32 bits.
constexpr std::size_t kMaxTokens = 1 << 24;

tl::unexpected<Status> bad_key(const GgufFile& file, std::string_view key, std::string_view what) {
  return invalid(fmt::format("{}: {} {}", file.path(), key, what));
}

Outcome read_kind(const GgufFile& file, Vocab& vocab) {
  DUNLIN_ASSIGN(model, file.get_string(kModelKey));
  if (model == "llama") {
    vocab.kind = TokenizerKind::kSentencePiece;
    return {};
  }
  if (model == "bert") {
    vocab.kind = TokenizerKind::kWordPiece;
    return {};
  }
  if (model == "t5") {
    vocab.kind = TokenizerKind::kUnigram;
    return {};
  }
  if (model != "gpt2") {
    return fail(StatusCode::kUnimplemented,
                fmt::format("{}: {} is '{}'; only 'gpt2', 'llama', 'bert' and 't5' are supported",
                            file.path(), kModelKey, model));
  }
  vocab.kind = TokenizerKind::kBytePairs;
  DUNLIN_ASSIGN(name, file.get_string(kPreKey, std::string_view("default")));
  const PreTokenizerSpec* spec = find_pretokenizer_spec(name);
  if (spec == nullptr) {
    return fail(StatusCode::kUnimplemented,
                fmt::format("{}: {} is '{}', a pre-tokenizer that is not known", file.path(),
                            kPreKey, name));
  }
  vocab.pretokenizer = spec->name;
  return {};
}

Outcome read_tokens(const GgufFile& file, Vocab& vocab) {
  DUNLIN_ASSIGN(tokens, file.get_strings(kTokensKey));
  if (tokens.empty()) return bad_key(file, kTokensKey, "has no tokens");
  if (tokens.size() > kMaxTokens) {
    return bad_key(file, kTokensKey,
                   fmt::format("has {} tokens, more than {}", tokens.size(), kMaxTokens));
  }
  std::uint64_t num_bytes = 0;
  vocab.tokens.resize(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    vocab.tokens[i] = tokens.string(i);
    num_bytes += vocab.tokens[i].size();
  }
  if (num_bytes > std::numeric_limits<std::uint32_t>::max()) {
    return bad_key(file, kTokensKey, "has more than 4 GiB of text");
  }
  return {};
}

// Without types all tokens are normal; the markers and the ids that keys name become control.
Outcome read_types(const GgufFile& file, Vocab& vocab) {
  vocab.types.assign(vocab.tokens.size(), TokenType::kNormal);
  if (!file.has(kTypesKey)) return {};
  DUNLIN_ASSIGN(types, file.get_integers(kTypesKey));
  if (types.size() != vocab.tokens.size()) {
    return bad_key(file, kTypesKey,
                   fmt::format("has {} entries for {} tokens", types.size(), vocab.tokens.size()));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::int64_t type = types.integer(i);
    if (type < 0 || type > static_cast<int>(TokenType::kByte)) {
      return bad_key(file, kTypesKey,
                     fmt::format("gives token {} the type {}; 1 to 6 are known", i, type));
    }
    if (type != 0) vocab.types[i] = static_cast<TokenType>(type);
  }
  return {};
}

Outcome read_scores(const GgufFile& file, Vocab& vocab) {
  DUNLIN_ASSIGN(scores, file.get_numbers(kScoresKey));
  if (scores.size() != vocab.tokens.size()) {
    return bad_key(file, kScoresKey,
                   fmt::format("has {} entries for {} tokens", scores.size(), vocab.tokens.size()));
  }
  vocab.scores.resize(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    vocab.scores[i] = static_cast<float>(scores.number(i));
    if (!std::isfinite(vocab.scores[i])) {
      return bad_key(file, kScoresKey,
                     fmt::format("gives token {} a score that is not a number", i));
    }
  }
  return {};
}

Outcome read_merges(const GgufFile& file, Vocab& vocab) {
  DUNLIN_ASSIGN(merges, file.get_strings(kMergesKey));
  if (merges.size() > std::numeric_limits<std::uint32_t>::max() / 2) {
    return bad_key(file, kMergesKey, "has too many entries");
  }
  vocab.merges.resize(merges.size());
  for (std::size_t i = 0; i < merges.size(); ++i) vocab.merges[i] = merges.string(i);
  return {};
}

// The id that `key` names, `if_missing` where there is no such key.
Result<TokenId> read_id(const GgufFile& file, const Vocab& vocab, std::string_view key,
                        TokenId if_missing) {
  if (!file.has(key)) return if_missing < vocab.size() ? if_missing : -1;
  DUNLIN_ASSIGN(id, file.get_u32(key));
  // Written by some converters for "none".
  if (id == std::numeric_limits<std::uint32_t>::max()) return -1;
  if (id >= vocab.tokens.size()) {
    return bad_key(file, key,
                   fmt::format("is {}, but there are only {} tokens", id, vocab.tokens.size()));
  }
  return static_cast<TokenId>(id);
}

// BERT's [CLS] and [SEP] take the places of the tokens in front and behind. What no key names is
// found by its text.
Outcome read_wordpiece_ids(const GgufFile& file, Vocab& vocab) {
  const auto named = [&](std::string_view text) {
    const auto at = std::find(vocab.tokens.begin(), vocab.tokens.end(), text);
    return at == vocab.tokens.end() ? TokenId{-1} : static_cast<TokenId>(at - vocab.tokens.begin());
  };
  // The second is how the key is spelled.
  DUNLIN_ASSIGN(cls, read_id(file, vocab, "tokenizer.ggml.cls_token_id", named("[CLS]")));
  DUNLIN_ASSIGN(sep, read_id(file, vocab, "tokenizer.ggml.seperator_token_id", named("[SEP]")));
  DUNLIN_ASSIGN(unknown, read_id(file, vocab, "tokenizer.ggml.unknown_token_id", named("[UNK]")));
  vocab.bos_id = cls;
  vocab.eos_id = sep;
  vocab.unknown_id = unknown;
  if (file.has(kTypesKey)) return {};
  for (const TokenId id : {cls, sep, unknown, named("[PAD]"), named("[MASK]")})
    if (id >= 0) vocab.types[static_cast<std::size_t>(id)] = TokenType::kControl;
  return {};
}

// Ids that files leave unsaid: SentencePiece's own numbering, and T5's.
struct ReservedIds {
  TokenId bos = -1, eos = -1, unknown = -1;
};

ReservedIds reserved_ids(TokenizerKind kind) {
  if (kind == TokenizerKind::kSentencePiece) return {1, 2, 0};
  if (kind == TokenizerKind::kUnigram) return {-1, 1, 2};
  return {};
}

// Map and spaces of SentencePiece's normalizer. Bytes are signed in some files.
Outcome read_charsmap(const GgufFile& file, Vocab& vocab) {
  DUNLIN_ASSIGN(removes, file.get_bool("tokenizer.ggml.remove_extra_whitespaces", false));
  vocab.removes_extra_spaces = removes;
  constexpr const char* kKey = "tokenizer.ggml.precompiled_charsmap";
  if (!file.has(kKey)) return {};
  DUNLIN_ASSIGN(bytes, file.get_integers(kKey));
  if (bytes.element_type() != GgufType::kU8 && bytes.element_type() != GgufType::kI8) {
    return bad_key(file, kKey, "must be an array of bytes");
  }
  vocab.charsmap.resize(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    vocab.charsmap[i] = static_cast<char>(bytes.integer(i));
  return {};
}

// Ids around a text.
Result<std::optional<std::vector<TokenId>>> read_around(const GgufFile& file, const Vocab& vocab,
                                                        std::string_view key) {
  constexpr std::size_t kMaxIds = 64;
  std::optional<std::vector<TokenId>> ids;
  if (!file.has(key)) return ids;
  DUNLIN_ASSIGN(stored, file.get_integers(key));
  if (stored.size() > kMaxIds) return bad_key(file, key, fmt::format("has more than {}", kMaxIds));
  ids.emplace();
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const std::int64_t id = stored.integer(i);
    if (id < 0 || id >= vocab.size()) {
      return bad_key(file, key,
                     fmt::format("has {}, but there are only {} tokens", id, vocab.size()));
    }
    ids->push_back(static_cast<TokenId>(id));
  }
  return ids;
}

// Keys that only `convert` writes, for what other readers of GGUF don't know.
Outcome read_own_keys(const GgufFile& file, Vocab& vocab) {
  constexpr const char* kSchemeKey = "tokenizer.ggml.prepend_scheme";
  if (vocab.kind == TokenizerKind::kUnigram) return {};
  DUNLIN_ASSIGN(prefix, read_around(file, vocab, "tokenizer.ggml.prefix_token_ids"));
  DUNLIN_ASSIGN(suffix, read_around(file, vocab, "tokenizer.ggml.suffix_token_ids"));
  vocab.prefix_ids = std::move(prefix);
  vocab.suffix_ids = std::move(suffix);
  if (!file.has(kSchemeKey)) return {};
  DUNLIN_ASSIGN(name, file.get_string(kSchemeKey));
  for (const PrependSchemeName& row : kPrependSchemes)
    if (row.name == name) vocab.prepend_scheme = row.scheme;
  if (vocab.prepend_scheme) return {};
  return bad_key(file, kSchemeKey,
                 fmt::format("is {}; known are always, first and never", quote_for_message(name)));
}

Outcome read_special_ids(const GgufFile& file, Vocab& vocab) {
  const ReservedIds reserved = reserved_ids(vocab.kind);
  DUNLIN_ASSIGN(bos, read_id(file, vocab, "tokenizer.ggml.bos_token_id", reserved.bos));
  DUNLIN_ASSIGN(eos, read_id(file, vocab, "tokenizer.ggml.eos_token_id", reserved.eos));
  DUNLIN_ASSIGN(unknown, read_id(file, vocab, "tokenizer.ggml.unknown_token_id", reserved.unknown));
  DUNLIN_ASSIGN(eot, read_id(file, vocab, "tokenizer.ggml.eot_token_id", -1));
  DUNLIN_ASSIGN(eom, read_id(file, vocab, "tokenizer.ggml.eom_token_id", -1));
  vocab.bos_id = bos;
  vocab.eos_id = eos;
  vocab.unknown_id = unknown;
  if (!file.has(kTypesKey)) {
    for (TokenId id : {bos, eos, eot, eom, unknown}) {
      if (id >= 0) vocab.types[static_cast<std::size_t>(id)] = TokenType::kControl;
    }
  }
  if (file.has("tokenizer.ggml.add_bos_token")) {
    DUNLIN_ASSIGN(adds_bos, file.get_bool("tokenizer.ggml.add_bos_token"));
    vocab.adds_bos = adds_bos;
  }
  const bool is_unigram = vocab.kind == TokenizerKind::kUnigram;
  DUNLIN_ASSIGN(adds_eos, file.get_bool("tokenizer.ggml.add_eos_token", is_unigram));
  DUNLIN_ASSIGN(adds_space, file.get_bool("tokenizer.ggml.add_space_prefix", !is_unigram));
  vocab.adds_eos = adds_eos;
  vocab.adds_space_prefix = adds_space;
  DUNLIN_TRY(read_own_keys(file, vocab));
  classify_markers(vocab, {eot, eom});
  return {};
}

}  // namespace

Result<Vocab> read_vocab(const GgufFile& file) {
  Vocab vocab;
  DUNLIN_TRY(read_kind(file, vocab));
  DUNLIN_TRY(read_tokens(file, vocab));
  DUNLIN_TRY(read_types(file, vocab));
  if (vocab.kind == TokenizerKind::kWordPiece) {
    DUNLIN_TRY(read_wordpiece_ids(file, vocab));
    return vocab;
  }
  if (vocab.kind == TokenizerKind::kBytePairs) {
    DUNLIN_TRY(read_merges(file, vocab));
  } else {
    DUNLIN_TRY(read_scores(file, vocab));
  }
  if (vocab.kind == TokenizerKind::kUnigram) DUNLIN_TRY(read_charsmap(file, vocab));
  DUNLIN_TRY(read_special_ids(file, vocab));
  return vocab;
}

}  // namespace dunlin
