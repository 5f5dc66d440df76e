#include "text/unigram_vocab.h"

#include <string>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/quote.h"
#include "text/hf_tokenizer.h"

namespace dunlin {
namespace {

using nlohmann::json;

constexpr const char* kSpace = "\u2581";

Outcome check_tokens(const Vocab& vocab) {
  if (vocab.unknown_id < 0) return invalid("tokenizer.ggml.unknown_token_id: is missing");
  if (vocab.scores.size() != vocab.tokens.size()) {
    return invalid("tokenizer.ggml.scores: one score for each token is needed");
  }
  std::unordered_map<std::string_view, std::size_t> ids;
  ids.reserve(vocab.tokens.size());
  for (std::size_t id = 0; id < vocab.tokens.size(); ++id) {
    if (vocab.tokens[id].empty()) continue;
    const auto [twin, is_new] = ids.emplace(vocab.tokens[id], id);
    if (is_new) continue;
    return invalid(fmt::format("tokenizer.ggml.tokens: tokens {} and {} are both {}", twin->second,
                               id, quote_for_message(vocab.tokens[id])));
  }
  return {};
}

// Tokens that are found in text as they are, or by no text: all but normal ones and bytes.
json added_tokens(const Vocab& vocab) {
  json added = json::array();
  for (std::size_t id = 0; id < vocab.tokens.size(); ++id) {
    const TokenType type = vocab.types[id];
    const bool is_plain = type == TokenType::kNormal || type == TokenType::kByte;
    if (is_plain || vocab.tokens[id].empty()) continue;
    added.push_back({{"id", id},
                     {"content", vocab.tokens[id]},
                     {"special", type != TokenType::kUserDefined},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false}});
  }
  return added;
}

json model_of(const Vocab& vocab) {
  json tokens = json::array();
  bool has_bytes = false;
  for (std::size_t id = 0; id < vocab.tokens.size(); ++id) {
    has_bytes = has_bytes || vocab.types[id] == TokenType::kByte;
    // The worst score counts for what is unknown; fillers have arbitrary ones.
    const bool is_normal = vocab.types[id] == TokenType::kNormal;
    tokens.push_back({vocab.tokens[id], is_normal ? vocab.scores[id] : 0.0F});
  }
  return {{"type", "Unigram"},
          {"unk_id", vocab.unknown_id},
          {"byte_fallback", has_bytes},
          {"vocab", std::move(tokens)}};
}

json replace(const char* kind, const char* pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", content}};
}

// Steps up to pieces with U+2581 for spaces. Words are cut apart where no token spans them.
void add_steps(const Vocab& vocab, json& file) {
  bool spans_words = false;
  for (const std::string_view token : vocab.tokens)
    spans_words = spans_words || has_inner_space(token);
  json steps = json::array();
  if (!vocab.charsmap.empty()) {
    const auto map = std::as_bytes(std::span(vocab.charsmap));
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", base64(map)}});
  }
  if (vocab.removes_extra_spaces) {
    // A word has a space in front, the first one too, whatever adds_space_prefix says: so do
    // llama.cpp's files mean it.
    steps.push_back(replace("Regex", " {2,}", " "));
    steps.push_back(replace("Regex", " (?![\\s\\S])", ""));
    file["pre_tokenizer"] = {{"type", "Metaspace"},
                             {"replacement", kSpace},
                             {"prepend_scheme", "always"},
                             {"split", !spans_words}};
  } else {
    if (vocab.adds_space_prefix) steps.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
    steps.push_back(replace("String", " ", kSpace));
    if (!spans_words) {
      file["pre_tokenizer"] = {{"type", "Split"},
                               {"pattern", {{"String", kSpace}}},
                               {"behavior", "MergedWithNext"},
                               {"invert", false}};
    }
  }
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
}

json decoder_of(const Vocab& vocab) {
  json steps = {replace("String", kSpace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (vocab.adds_space_prefix || vocab.removes_extra_spaces)
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", std::move(steps)}};
}

}  // namespace

bool has_inner_space(std::string_view token) {
  return token.find(kSpace, 1) != std::string_view::npos;
}

Result<std::unique_ptr<Tokenizer>> make_unigram_tokenizer(const Vocab& vocab) {
  DUNLIN_TRY(check_tokens(vocab));
  HfTokenizerConfig config;
  const auto text_of = [&](TokenId id) {
    return id < 0 ? std::nullopt
                  : std::optional<std::string>(vocab.tokens[static_cast<std::size_t>(id)]);
  };
  config.bos_token = text_of(vocab.bos_id);
  config.eos_token = text_of(vocab.eos_id);
  config.add_bos_token = vocab.adds_bos.value_or(false);
  config.add_eos_token = vocab.adds_eos;
  json file = {{"added_tokens", added_tokens(vocab)},
               {"decoder", decoder_of(vocab)},
               {"model", model_of(vocab)}};
  add_steps(vocab, file);
  return make_hf_tokenizer(file.dump(-1, ' ', false, json::error_handler_t::replace), config,
                           vocab.eos_ids);
}

}  // namespace dunlin
