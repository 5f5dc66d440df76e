#include "text/gguf_vocabulary.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "text/gguf_refusal.h"
#include "text/gguf_unigram.h"
#include "text/hf_file.h"
#include "text/hf_post_processor.h"
#include "text/hf_vocab.h"
#include "text/json_view.h"
#include "text/pretokenizer_table.h"
#include "text/unigram_vocab.h"
#include "text/vocab.h"
#include "text/wordpiece_vocab.h"

namespace dunlin {
namespace {

using hf::JsonView;

// Adds the expressions that a pre-tokenizer cuts by, one after the other; ends with ByteLevel.
Outcome add_expressions(const JsonView& view, std::vector<std::string>& expressions) {
  DUNLIN_ASSIGN(type, view.string("type"));
  if (type == "Sequence") {
    DUNLIN_ASSIGN(steps, view.array("pretokenizers"));
    for (const JsonView& step : steps) DUNLIN_TRY(add_expressions(step, expressions));
    return {};
  }
  if (type == "ByteLevel") {
    DUNLIN_ASSIGN(prefix, view.boolean_or("add_prefix_space", true));
    if (prefix) return gguf_cannot_say(view, "a space in front of all text");
    DUNLIN_ASSIGN(by_words, view.boolean_or("use_regex", true));
    if (by_words) expressions.emplace_back(kGpt2Expression);
    return {};
  }
  if (type == "Digits") {
    DUNLIN_ASSIGN(single, view.boolean_or("individual_digits", false));
    expressions.emplace_back(single ? "\\p{N}" : "\\p{N}+");
    return {};
  }
  if (type != "Split") return gguf_cannot_say(view, "pre-tokenizer " + type);
  DUNLIN_ASSIGN(behavior, view.string("behavior"));
  DUNLIN_ASSIGN(invert, view.boolean_or("invert", false));
  // "Removed" what is between the matches is the matches themselves.
  if (behavior != (invert ? "Removed" : "Isolated"))
    return gguf_cannot_say(view, "behavior " + behavior);
  DUNLIN_ASSIGN(pattern, view.object("pattern"));
  if (!pattern.has("Regex")) return gguf_cannot_say(view, "a pattern that is no expression");
  DUNLIN_ASSIGN(expression, pattern.string("Regex"));
  expressions.push_back(std::move(expression));
  return {};
}

Result<std::string> pretokenizer_name(const JsonView& root, bool whole_pieces_first) {
  DUNLIN_ASSIGN(view, root.object("pre_tokenizer"));
  std::vector<std::string> expressions;
  DUNLIN_TRY(add_expressions(view, expressions));
  for (const PreTokenizerSpec& spec : pretokenizer_specs()) {
    if (spec.whole_pieces_first == whole_pieces_first &&
        std::equal(spec.expressions.begin(), spec.expressions.end(), expressions.begin(),
                   expressions.end()))
      return std::string(spec.name);
  }
  return gguf_cannot_say(view, "it cuts text by other expressions than any known model");
}

Outcome check_normalizer(const JsonView& root) {
  if (!root.has("normalizer")) return {};
  DUNLIN_ASSIGN(normalizer, root.object("normalizer"));
  DUNLIN_ASSIGN(type, normalizer.string("type"));
  // Readers of GGUF leave text as it is; almost all text is in this form already.
  if (type == "NFC") return {};
  return gguf_cannot_say(normalizer, "normalizer " + type);
}

Result<JsonView> bpe_model(const JsonView& root) {
  DUNLIN_ASSIGN(model, root.object("model"));
  DUNLIN_ASSIGN(type, model.string_or("type", "BPE"));
  if (type != "BPE") return gguf_cannot_say(model, "model " + type);
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    DUNLIN_ASSIGN(text, model.string_or(affix, ""));
    if (!text.empty()) return gguf_cannot_say(model, affix);
  }
  return model;
}

// Readers of GGUF take the whole vocabulary to be bytes as characters.
Outcome set_byte_level(const JsonView& root, const JsonView& model, const hf::TokenizerFile& file,
                       GgufVocabulary& out) {
  DUNLIN_ASSIGN(whole_pieces_first, model.boolean_or("ignore_merges", false));
  DUNLIN_TRY(check_normalizer(root));
  DUNLIN_ASSIGN(pretokenizer, pretokenizer_name(root, whole_pieces_first));
  out.model = "gpt2";
  out.pretokenizer = std::move(pretokenizer);
  for (const auto& [left, right] : file.merges) out.merges.push_back(left + " " + right);
  return {};
}

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581, SentencePiece's

struct Spaces {
  bool are_marked = false;  // as U+2581
  bool have_prefix = false;
  std::optional<PrependScheme> scheme;  // Metaspace's, if that is what puts them in front
};

// A step of the normalizer or the pre-tokenizer of SentencePiece's models.
Outcome add_space_step(const JsonView& view, Spaces& spaces) {
  DUNLIN_ASSIGN(type, view.string("type"));
  if (type == "Sequence") {
    const char* key = view.has("normalizers") ? "normalizers" : "pretokenizers";
    DUNLIN_ASSIGN(steps, view.array(key));
    for (const JsonView& step : steps) DUNLIN_TRY(add_space_step(step, spaces));
    return {};
  }
  if (type == "Prepend") {
    DUNLIN_ASSIGN(text, view.string("prepend"));
    if (text != kSpace) return gguf_cannot_say(view, "text in front other than a space");
    spaces.have_prefix = true;
    return {};
  }
  if (type == "Metaspace") {
    DUNLIN_ASSIGN(replacement, view.string_or("replacement", kSpace));
    DUNLIN_ASSIGN(prefix, view.boolean_or("add_prefix_space", true));
    DUNLIN_ASSIGN(scheme, view.string_or("prepend_scheme", prefix ? "always" : "never"));
    if (replacement != kSpace) return gguf_cannot_say(view, "another character for spaces");
    spaces.are_marked = true;
    if (spaces.have_prefix) return {};  // Metaspace finds one in front already
    for (const PrependSchemeName& row : kPrependSchemes)
      if (row.name == scheme) spaces.scheme = row.scheme;
    return {};
  }
  // Spaces that are marked already: nothing is left to cut by.
  const bool replaces = type == "Replace", cuts = type == "Split" && spaces.are_marked;
  if (!replaces && !cuts) return gguf_cannot_say(view, "step " + type);
  DUNLIN_ASSIGN(pattern, view.object("pattern"));
  DUNLIN_ASSIGN(from, pattern.string_or("String", ""));
  if (from != " ") return gguf_cannot_say(view, "a pattern that is no space");
  if (!replaces) return {};
  DUNLIN_ASSIGN(to, view.string("content"));
  if (to != kSpace) return gguf_cannot_say(view, "another character for spaces");
  spaces.are_marked = true;
  return {};
}

bool is_byte_token(std::string_view text) {
  return text.size() == 6 && text.starts_with("<0x") && text.back() == '>';
}

void mark_bytes(hf::HfVocab& vocab) {
  for (std::size_t id = 0; id < vocab.texts.size(); ++id)
    if (vocab.in_model[id] && is_byte_token(vocab.texts[id])) vocab.types[id] = TokenType::kByte;
}

// Merging by score: what an earlier merge makes has the higher one.
Outcome set_sentence_piece(const JsonView& root, const JsonView& model,
                           const hf::TokenizerFile& file, hf::HfVocab& vocab, GgufVocabulary& out) {
  Spaces spaces;
  for (const char* key : {"normalizer", "pre_tokenizer"}) {
    if (!root.has(key)) continue;
    DUNLIN_ASSIGN(step, root.object(key));
    DUNLIN_TRY(add_space_step(step, spaces));
  }
  if (!spaces.are_marked) return gguf_cannot_say(model, "byte_fallback without spaces as U+2581");
  out.model = "llama";
  out.pretokenizer = "default";
  out.prepend_scheme = spaces.scheme;
  // Other readers have one rule for all text between special tokens. Where only the first text gets
  // a space, it is the rule for conversations, whose texts stand behind such tokens, if there are
  // to be any.
  out.adds_space_prefix = spaces.have_prefix || spaces.scheme == PrependScheme::kAlways ||
                          (spaces.scheme == PrependScheme::kFirst && out.chat_template.empty());
  DUNLIN_ASSIGN(unknown, model.string_or("unk_token", ""));
  mark_bytes(vocab);
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t id = 0; id < vocab.texts.size(); ++id) {
    if (!vocab.in_model[id]) continue;
    ids[vocab.texts[id]] = id;
    if (vocab.texts[id] != unknown) continue;
    vocab.types[id] = TokenType::kUnknown;
    out.unknown_id = static_cast<TokenId>(id);
  }
  const auto lowest = -static_cast<float>(file.merges.size()) - 1;
  out.scores.assign(vocab.texts.size(), lowest);
  for (std::size_t rank = 0; rank < file.merges.size(); ++rank) {
    const auto made = ids.find(file.merges[rank].first + file.merges[rank].second);
    if (made == ids.end()) continue;
    float& score = out.scores[made->second];
    if (score == lowest) score = -static_cast<float>(rank);
  }
  return {};
}

Outcome set_unigram(const JsonView& root, const JsonView& model, hf::HfVocab& vocab,
                    GgufVocabulary& out) {
  constexpr float kNever = -1000;  // no sum of scores is worse: a filler is never taken
  DUNLIN_ASSIGN(unknown, model.integer("unk_id", 0, static_cast<int>(vocab.scores.size()) - 1));
  DUNLIN_ASSIGN(falls_back, model.boolean_or("byte_fallback", false));
  const bool spans = std::any_of(vocab.texts.begin(), vocab.texts.end(), has_inner_space);
  DUNLIN_ASSIGN(steps, read_unigram_steps(root, spans));
  if (falls_back) mark_bytes(vocab);
  vocab.types[static_cast<std::size_t>(unknown)] = TokenType::kUnknown;
  out.model = "t5";
  out.pretokenizer = "default";
  out.unknown_id = unknown;
  out.charsmap = std::move(steps.charsmap);
  out.adds_space_prefix = steps.adds_space_prefix;
  out.removes_extra_spaces = steps.removes_extra_spaces;
  out.scores.assign(vocab.scores.begin(), vocab.scores.end());
  out.scores.resize(vocab.texts.size(), kNever);
  return {};
}

// BERT's steps, which readers of GGUF take for granted.
Outcome check_bert_steps(const JsonView& root) {
  DUNLIN_ASSIGN(model, root.object("model"));
  DUNLIN_ASSIGN(prefix, model.string_or("continuing_subword_prefix", "##"));
  if (prefix != "##") return gguf_cannot_say(model, "continuing_subword_prefix " + prefix);
  DUNLIN_ASSIGN(normalizer, root.object("normalizer"));
  DUNLIN_ASSIGN(type, normalizer.string("type"));
  if (type != "BertNormalizer") return gguf_cannot_say(normalizer, "normalizer " + type);
  for (const char* step : {"lowercase", "clean_text", "handle_chinese_chars", "strip_accents"}) {
    DUNLIN_ASSIGN(wanted, normalizer.boolean_or(step, true));
    if (!wanted) return gguf_cannot_say(normalizer, std::string(step) + " false");
  }
  DUNLIN_ASSIGN(pretokenizer, root.object("pre_tokenizer"));
  DUNLIN_ASSIGN(cut, pretokenizer.string("type"));
  if (cut != "BertPreTokenizer") return gguf_cannot_say(pretokenizer, "pre-tokenizer " + cut);
  return {};
}

Outcome set_wordpiece(const JsonView& root, hf::HfVocab& vocab, GgufVocabulary& out) {
  constexpr std::pair<std::string_view, TokenId GgufVocabulary::*> kNames[] = {
      {"[UNK]", &GgufVocabulary::unknown_id},
      {"[CLS]", &GgufVocabulary::cls_id},
      {"[SEP]", &GgufVocabulary::separator_id},
      {"[PAD]", &GgufVocabulary::padding_id},
      {"[MASK]", &GgufVocabulary::mask_id}};
  DUNLIN_TRY(check_bert_steps(root));
  out.model = "bert";
  out.pretokenizer = "bert-bge";
  for (std::size_t id = 0; id < vocab.texts.size(); ++id) {
    std::string& text = vocab.texts[id];
    for (const auto& [name, place] : kNames)
      if (text == name) out.*place = static_cast<TokenId>(id);
    if (!text.empty() && vocab.types[id] != TokenType::kControl) text = gguf_wordpiece(text);
  }
  return {};
}

Outcome set_model(const JsonView& root, const hf::TokenizerFile& file, hf::HfVocab& vocab,
                  GgufVocabulary& out) {
  DUNLIN_ASSIGN(any_model, root.object("model"));
  DUNLIN_ASSIGN(type, any_model.string_or("type", "BPE"));
  if (type == "WordPiece") return set_wordpiece(root, vocab, out);
  if (type == "Unigram") return set_unigram(root, any_model, vocab, out);
  DUNLIN_ASSIGN(model, bpe_model(root));
  DUNLIN_ASSIGN(is_sentence_piece, model.boolean_or("byte_fallback", false));
  return is_sentence_piece ? set_sentence_piece(root, model, file, vocab, out)
                           : set_byte_level(root, model, file, out);
}

// Readers find most ends of a text by their names; of others GGUF has keys for two.
Outcome set_more_ends(const JsonView& root, const hf::HfVocab& hf_vocab, GgufVocabulary& out) {
  Vocab read;
  read.tokens.assign(hf_vocab.texts.begin(), hf_vocab.texts.end());
  read.types = hf_vocab.types;
  read.eos_id = hf_vocab.eos_id;
  classify_markers(read, {});
  TokenId GgufVocabulary::* const keys[] = {&GgufVocabulary::eot_id, &GgufVocabulary::eom_id};
  std::size_t num_keys = 0;
  for (const TokenId id : hf_vocab.eos_ids) {
    if (std::find(read.eos_ids.begin(), read.eos_ids.end(), id) != read.eos_ids.end()) continue;
    if (num_keys == std::size(keys))
      return gguf_cannot_say(root, "more than two eos_token_id without a usual name");
    out.*keys[num_keys++] = id;
  }
  return {};
}

// What stands on one side of a text: nothing, or `id`, which may not be named yet. Anything else
// only `ids` can say. Whether `id` is part of it.
bool set_side(std::span<const TokenId> added, TokenId& id,
              std::optional<std::vector<TokenId>>& ids) {
  if (added.empty()) return false;
  if (added.size() == 1 && id < 0) id = added[0];
  if (added.size() > 1 || added[0] != id) ids.emplace(added.begin(), added.end());
  return std::find(added.begin(), added.end(), id) != added.end();
}

Outcome set_around(const JsonView& root, const hf::AddedAround& around, GgufVocabulary& out) {
  if (out.model == "bert") {
    out.adds_bos = !around.prefix_ids.empty();
    out.adds_eos = !around.suffix_ids.empty();
    return {};
  }
  out.adds_bos = set_side(around.prefix_ids, out.bos_id, out.prefix_ids);
  out.adds_eos = set_side(around.suffix_ids, out.eos_id, out.suffix_ids);
  if (out.model != "t5" || !(out.prefix_ids || out.suffix_ids)) return {};
  return gguf_cannot_say(root, "post_processor adds other tokens than bos and eos");
}

}  // namespace

Result<GgufVocabulary> to_gguf_vocabulary(std::string_view tokenizer_json,
                                          const HfTokenizerConfig& config,
                                          std::span<const TokenId> more_eos_ids) {
  DUNLIN_ASSIGN(file, hf::TokenizerFile::parse(tokenizer_json));
  const JsonView root(file.root, "tokenizer.json");
  DUNLIN_ASSIGN(vocab, hf::HfVocab::make(file, config, more_eos_ids));
  GgufVocabulary out;
  if (const std::string* source = config.find_chat_template(false)) out.chat_template = *source;
  DUNLIN_TRY(set_more_ends(root, vocab, out));
  DUNLIN_TRY(set_model(root, file, vocab, out));
  out.bos_id = vocab.bos_id;
  out.eos_id = vocab.eos_id;
  DUNLIN_ASSIGN(around, hf::read_added_around(root, vocab, config));
  DUNLIN_TRY(set_around(root, around, out));
  for (std::size_t id = 0; id < vocab.texts.size(); ++id) {
    const bool is_there = !vocab.texts[id].empty();
    out.tokens.push_back(is_there ? std::move(vocab.texts[id]) : fmt::format("[PAD{}]", id));
    out.types.push_back(static_cast<std::int32_t>(is_there ? vocab.types[id] : TokenType::kUnused));
  }
  return out;
}

}  // namespace dunlin
