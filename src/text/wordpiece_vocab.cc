#include "text/wordpiece_vocab.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/quote.h"
#include "text/hf_tokenizer.h"

namespace dunlin {
namespace {

using nlohmann::json;

constexpr std::string_view kWordMark = "\u2581";
constexpr std::string_view kContinues = "##";

// "[CLS]", "[unused7]": the same in both.
bool is_bracketed(std::string_view text) {
  return text.size() > 1 && text.starts_with('[') && text.ends_with(']');
}

std::string hf_wordpiece(std::string_view stored) {
  if (is_bracketed(stored)) return std::string(stored);
  if (stored.starts_with(kWordMark)) return std::string(stored.substr(kWordMark.size()));
  return std::string(kContinues) + std::string(stored);
}

json special_token(const std::string& text) {
  return {{"SpecialToken", {{"id", text}, {"type_id", 0}}}};
}

}  // namespace

std::string gguf_wordpiece(std::string_view text) {
  if (is_bracketed(text)) return std::string(text);
  if (text.starts_with(kContinues)) return std::string(text.substr(kContinues.size()));
  return std::string(kWordMark) + std::string(text);
}

Result<std::unique_ptr<Tokenizer>> make_wordpiece_tokenizer(const Vocab& vocab) {
  std::vector<std::string> texts;
  json ids = json::object(), added = json::array();
  for (std::size_t id = 0; id < vocab.tokens.size(); ++id) {
    const TokenType type = vocab.types[id];
    const bool is_special = type == TokenType::kControl || type == TokenType::kUnknown;
    texts.push_back(is_special ? std::string(vocab.tokens[id]) : hf_wordpiece(vocab.tokens[id]));
    const std::string& text = texts.back();
    if (!ids.emplace(text, id).second) {
      return invalid(fmt::format("tokenizer.ggml.tokens: token {} is {}, like one before it", id,
                                 quote_for_message(vocab.tokens[id])));
    }
    if (!is_special) continue;
    added.push_back({{"id", id},
                     {"content", text},
                     {"special", true},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false}});
  }
  for (const TokenId id : {vocab.unknown_id, vocab.bos_id, vocab.eos_id}) {
    if (id < 0) return invalid("tokenizer.ggml.tokens: [UNK], [CLS] or [SEP] is missing");
  }
  const auto text_of = [&](TokenId id) { return texts[static_cast<std::size_t>(id)]; };
  const std::string cls = text_of(vocab.bos_id), sep = text_of(vocab.eos_id);
  const json template_of_one = {
      special_token(cls), {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}, special_token(sep)};
  const json special_ids = {{cls, {{"id", cls}, {"ids", {vocab.bos_id}}, {"tokens", {cls}}}},
                            {sep, {{"id", sep}, {"ids", {vocab.eos_id}}, {"tokens", {sep}}}}};
  const json file = {
      {"added_tokens", added},
      {"normalizer",
       {{"type", "BertNormalizer"},
        {"clean_text", true},
        {"handle_chinese_chars", true},
        {"strip_accents", nullptr},
        {"lowercase", true}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", template_of_one},
        {"pair", json::array()},
        {"special_tokens", special_ids}}},
      {"decoder", {{"type", "WordPiece"}, {"prefix", kContinues}, {"cleanup", true}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", text_of(vocab.unknown_id)},
        {"continuing_subword_prefix", kContinues},
        {"max_input_chars_per_word", 100},
        {"vocab", ids}}}};
  return make_hf_tokenizer(file.dump(-1, ' ', false, json::error_handler_t::replace), {}, {});
}

}  // namespace dunlin
