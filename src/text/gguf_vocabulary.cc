#include "text/gguf_vocabulary.h"

#include <algorithm>

#include <fmt/format.h>

#include "text/hf_file.h"
#include "text/hf_vocab.h"
#include "text/json_view.h"
#include "text/pretokenizer_table.h"

namespace dunlin {
namespace {

using hf::JsonView;

tl::unexpected<Status> cannot(const JsonView& view, std::string_view what) {
  return fail(
      StatusCode::kUnimplemented,
      fmt::format("tokenizer.json: {}: {}, which a GGUF file can't say", view.path(), what));
}

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
    if (prefix) return cannot(view, "a space in front of all text");
    DUNLIN_ASSIGN(by_words, view.boolean_or("use_regex", true));
    if (by_words) expressions.emplace_back(kGpt2Expression);
    return {};
  }
  if (type == "Digits") {
    DUNLIN_ASSIGN(single, view.boolean_or("individual_digits", false));
    expressions.emplace_back(single ? "\\p{N}" : "\\p{N}+");
    return {};
  }
  if (type != "Split") return cannot(view, "pre-tokenizer " + type);
  DUNLIN_ASSIGN(behavior, view.string("behavior"));
  DUNLIN_ASSIGN(invert, view.boolean_or("invert", false));
  // "Removed" what is between the matches is the matches themselves.
  if (behavior != (invert ? "Removed" : "Isolated")) return cannot(view, "behavior " + behavior);
  DUNLIN_ASSIGN(pattern, view.object("pattern"));
  if (!pattern.has("Regex")) return cannot(view, "a pattern that is no expression");
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
  return cannot(view, "it cuts text by other expressions than any known model");
}

Outcome check_normalizer(const JsonView& root) {
  if (!root.has("normalizer")) return {};
  DUNLIN_ASSIGN(normalizer, root.object("normalizer"));
  DUNLIN_ASSIGN(type, normalizer.string("type"));
  // Readers of GGUF leave text as it is; almost all text is in this form already.
  if (type == "NFC") return {};
  return cannot(normalizer, "normalizer " + type);
}

// Readers of GGUF take the whole vocabulary to be bytes as characters.
Result<bool> check_model(const JsonView& root) {
  DUNLIN_ASSIGN(model, root.object("model"));
  DUNLIN_ASSIGN(type, model.string_or("type", "BPE"));
  if (type != "BPE") return cannot(model, "model " + type);
  DUNLIN_ASSIGN(byte_fallback, model.boolean_or("byte_fallback", false));
  if (byte_fallback) return cannot(model, "byte_fallback");
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    DUNLIN_ASSIGN(text, model.string_or(affix, ""));
    if (!text.empty()) return cannot(model, affix);
  }
  return model.boolean_or("ignore_merges", false);
}

}  // namespace

Result<GgufVocabulary> to_gguf_vocabulary(std::string_view tokenizer_json,
                                          const HfTokenizerConfig& config,
                                          std::span<const TokenId> more_eos_ids) {
  DUNLIN_ASSIGN(file, hf::TokenizerFile::parse(tokenizer_json));
  const JsonView root(file.root, "tokenizer.json");
  DUNLIN_ASSIGN(whole_pieces_first, check_model(root));
  DUNLIN_TRY(check_normalizer(root));
  GgufVocabulary out;
  DUNLIN_ASSIGN(pretokenizer, pretokenizer_name(root, whole_pieces_first));
  out.model = "gpt2";
  out.pretokenizer = std::move(pretokenizer);
  for (const auto& [left, right] : file.merges) out.merges.push_back(left + " " + right);
  DUNLIN_ASSIGN(vocab, hf::HfVocab::make(file, config, more_eos_ids));
  for (std::size_t id = 0; id < vocab.texts.size(); ++id) {
    const bool is_there = !vocab.texts[id].empty();
    out.tokens.push_back(is_there ? std::move(vocab.texts[id]) : fmt::format("[PAD{}]", id));
    out.types.push_back(static_cast<std::int32_t>(is_there ? vocab.types[id] : TokenType::kUnused));
  }
  out.bos_id = vocab.bos_id;
  out.eos_id = vocab.eos_id;
  out.adds_bos = config.add_bos_token;
  out.adds_eos = config.add_eos_token;
  if (const std::string* source = config.find_chat_template(false)) out.chat_template = *source;
  return out;
}

}  // namespace dunlin
