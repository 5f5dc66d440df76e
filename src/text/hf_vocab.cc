#include "text/hf_vocab.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/quote.h"
#include "text/json_view.h"

namespace dunlin::hf {
namespace {

constexpr std::size_t kMaxHoles = 65536;

class Maker {
 public:
  Outcome add_model_tokens(TokenizerFile& file);
  Outcome add_tokens(const std::vector<AddedToken>& tokens, std::string_view where);
  Outcome name_specials(const HfTokenizerConfig& config, std::span<const TokenId> more_eos_ids);
  HfVocab take() && { return std::move(out_); }

 private:
  Outcome grow(TokenId id, std::size_t num_tokens);
  Outcome add_token(AddedToken token, std::string_view where);
  TokenId find_text(const std::string& text) const;
  Result<TokenId> find_named(const std::optional<std::string>& text, std::string_view key) const;
  void classify(std::span<const TokenId> more_eos_ids);

  HfVocab out_;
  std::unordered_map<std::string, TokenId> added_ids_;
  std::unordered_map<TokenId, std::size_t> added_places_;            // in out_.added
  mutable std::unordered_map<std::string_view, TokenId> model_ids_;  // filled when first asked
};

// Ids may have holes, but a small file can't ask for much memory.
Outcome Maker::grow(TokenId id, std::size_t num_tokens) {
  const auto size = static_cast<std::size_t>(id) + 1;
  if (size > 2 * num_tokens + kMaxHoles) {
    return invalid(fmt::format("id {} is too large for {} tokens", id, num_tokens));
  }
  if (out_.texts.size() >= size) return {};
  out_.texts.resize(size);
  out_.types.resize(size, TokenType::kUnused);
  out_.in_model.resize(size, false);
  return {};
}

Outcome Maker::add_model_tokens(TokenizerFile& file) {
  if (!file.has_vocab) return invalid("model.vocab: is missing");
  if (file.vocab.empty()) return invalid("model.vocab: is empty");
  for (std::size_t i = 0; i < file.vocab.size(); ++i) {
    auto& [text, number] = file.vocab[i];
    const auto id = static_cast<TokenId>(file.vocab_is_scored ? i : number);
    DUNLIN_TRY(grow(id, file.vocab.size()));
    const auto idx = static_cast<std::size_t>(id);
    if (out_.in_model[idx]) {
      return invalid(fmt::format("model.vocab: {} and {} are both {}",
                                 quote_for_message(out_.texts[idx]), quote_for_message(text), id));
    }
    out_.texts[idx] = std::move(text);
    out_.types[idx] = TokenType::kNormal;
    out_.in_model[idx] = true;
    if (file.vocab_is_scored) out_.scores.push_back(number);
  }
  file.vocab.clear();
  return {};
}

TokenId Maker::find_text(const std::string& text) const {
  if (const auto found = added_ids_.find(text); found != added_ids_.end()) return found->second;
  if (model_ids_.empty()) {
    model_ids_.reserve(out_.texts.size());
    for (TokenId id = 0; id < out_.size(); ++id) {
      const auto idx = static_cast<std::size_t>(id);
      // Of equal texts with scores the last one counts.
      if (out_.in_model[idx]) model_ids_[out_.texts[idx]] = id;
    }
  }
  const auto found = model_ids_.find(text);
  return found == model_ids_.end() ? -1 : found->second;
}

Outcome Maker::add_tokens(const std::vector<AddedToken>& tokens, std::string_view where) {
  // All room at once: model_ids_ has views of the texts.
  model_ids_.clear();
  TokenId last = 0;
  for (const AddedToken& token : tokens) last = std::max(last, token.id);
  DUNLIN_TRY(grow(last, out_.texts.size() + tokens.size()));
  for (const AddedToken& token : tokens) DUNLIN_TRY(add_token(token, where));
  return {};
}

Outcome Maker::add_token(AddedToken token, std::string_view where) {
  const TokenId known = find_text(token.content);
  if (known >= 0 && known != token.id) {
    return invalid(fmt::format("{}: {} has id {}, but is {} elsewhere", where,
                               quote_for_message(token.content), token.id, known));
  }
  if (known < 0) {
    if (!out_.texts[static_cast<std::size_t>(token.id)].empty()) {
      return invalid(
          fmt::format("{}: {} has id {}, which is {}", where, quote_for_message(token.content),
                      token.id, quote_for_message(out_.texts[static_cast<std::size_t>(token.id)])));
    }
    out_.texts[static_cast<std::size_t>(token.id)] = token.content;
  }
  const auto [twin, is_new] = added_ids_.try_emplace(token.content, token.id);
  const auto [place, _] = added_places_.try_emplace(token.id, out_.added.size());
  if (is_new) {
    out_.added.push_back(std::move(token));
  } else {
    out_.added[place->second] = std::move(token);
  }
  return {};
}

Result<TokenId> Maker::find_named(const std::optional<std::string>& text,
                                  std::string_view key) const {
  if (!text) return -1;
  const TokenId id = find_text(*text);
  if (id >= 0) return id;
  return invalid(fmt::format("{} {} of tokenizer_config.json is no token here", key,
                             quote_for_message(*text)));
}

// Names that the field uses for ends and starts of turns count as control tokens, but only those
// of added tokens, since no others are looked for.
void Maker::classify(std::span<const TokenId> more_eos_ids) {
  for (const AddedToken& token : out_.added) {
    out_.types[static_cast<std::size_t>(token.id)] =
        token.is_special ? TokenType::kControl : TokenType::kUserDefined;
  }
  Vocab vocab;
  vocab.tokens.assign(out_.texts.begin(), out_.texts.end());
  vocab.types = out_.types;
  vocab.eos_id = out_.eos_id;
  classify_markers(vocab, {more_eos_ids.begin(), more_eos_ids.end()});
  out_.eos_ids = std::move(vocab.eos_ids);
  for (AddedToken& token : out_.added) {
    const auto idx = static_cast<std::size_t>(token.id);
    out_.types[idx] = vocab.types[idx];
    token.is_special = vocab.types[idx] == TokenType::kControl;
  }
  std::stable_partition(out_.added.begin(), out_.added.end(),
                        [](const AddedToken& token) { return token.is_special; });
}

Outcome Maker::name_specials(const HfTokenizerConfig& config,
                             std::span<const TokenId> more_eos_ids) {
  // A model's own tokens that the configuration names are special ones.
  for (const auto* text :
       {&config.bos_token, &config.eos_token, &config.pad_token, &config.unk_token}) {
    if (!*text || added_ids_.contains(**text)) continue;
    const TokenId id = find_text(**text);
    if (id < 0) continue;
    AddedToken token;
    token.id = id;
    token.content = **text;
    token.is_special = true;
    DUNLIN_TRY(add_token(std::move(token), "tokenizer_config.json"));
  }
  DUNLIN_ASSIGN(bos_id, find_named(config.bos_token, "bos_token"));
  DUNLIN_ASSIGN(eos_id, find_named(config.eos_token, "eos_token"));
  out_.bos_id = bos_id;
  out_.eos_id = eos_id;
  for (TokenId id : more_eos_ids) {
    if (id < 0 || id >= out_.size()) {
      return invalid(
          fmt::format("eos_token_id {} is not below the vocabulary's size, {}", id, out_.size()));
    }
  }
  if (out_.eos_id < 0 && !more_eos_ids.empty()) out_.eos_id = more_eos_ids[0];
  classify(more_eos_ids);
  return {};
}

}  // namespace

Result<HfVocab> HfVocab::make(TokenizerFile& file, const HfTokenizerConfig& config,
                              std::span<const TokenId> more_eos_ids) {
  Maker maker;
  DUNLIN_TRY(maker.add_model_tokens(file));
  const JsonView root(file.root, "tokenizer.json");
  if (root.has("added_tokens")) {
    DUNLIN_ASSIGN(views, root.array("added_tokens"));
    std::vector<AddedToken> added;
    for (const JsonView& view : views) {
      DUNLIN_ASSIGN(id, view.integer("id", 0, kMaxTokenId));
      DUNLIN_ASSIGN(token, read_added_token(view, id));
      if (id < config.vocab_size) added.push_back(std::move(token));
    }
    DUNLIN_TRY(maker.add_tokens(added, "added_tokens"));
  }
  std::vector<AddedToken> added = config.added_tokens;
  std::erase_if(added, [&](const AddedToken& token) { return token.id >= config.vocab_size; });
  DUNLIN_TRY(maker.add_tokens(added, "added_tokens_decoder of tokenizer_config.json"));
  DUNLIN_TRY(maker.name_specials(config, more_eos_ids));
  return std::move(maker).take();
}

}  // namespace dunlin::hf
