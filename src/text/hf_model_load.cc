#include "text/hf_model_load.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/quote.h"
#include "text/bpe_model.h"
#include "text/json_view.h"
#include "text/unigram_model.h"
#include "text/wordpiece_model.h"

namespace dunlin::hf {
namespace {

class Loader {
 public:
  Loader(const TokenizerFile& file, const HfVocab& vocab)
      : file_(file), vocab_(vocab), root_(file.root, "tokenizer.json") {}

  Result<LoadedModel> load();
  Result<std::unique_ptr<TokenModel>> load_bpe(const JsonView& model);
  Result<std::unique_ptr<TokenModel>> load_unigram(const JsonView& model);
  Result<std::unique_ptr<TokenModel>> load_wordpiece(const JsonView& model);

 private:
  Result<std::unique_ptr<TokenTable>> make_table() const;
  Result<MergeTable> load_merges(std::size_t prefix_size, BpeOptions& options) const;
  Result<TokenId> read_unknown(const JsonView& model) const;
  std::array<TokenId, 256> find_bytes() const;
  TokenId find_any(const std::string& text) const;

  const TokenizerFile& file_;
  const HfVocab& vocab_;
  JsonView root_;
  std::unique_ptr<TokenTable> table_;
  mutable std::unordered_map<std::string_view, TokenId> unfindable_;  // filled when first asked
};

struct Row {
  std::string_view name;
  Result<std::unique_ptr<TokenModel>> (Loader::*load)(const JsonView& model);
};
constexpr Row kTypes[] = {
    {"BPE", &Loader::load_bpe},
    {"Unigram", &Loader::load_unigram},
    {"WordPiece", &Loader::load_wordpiece},
};

Result<LoadedModel> Loader::load() {
  DUNLIN_ASSIGN(model, root_.object("model"));
  const Row* row = nullptr;
  if (model.has("type")) {
    DUNLIN_ASSIGN(found, find_named(model, "type", std::span<const Row>(kTypes)));
    row = found;
  } else {
    row = &kTypes[file_.has_merges ? 0 : file_.vocab_is_scored ? 1 : 2];
  }
  if ((row->name == "Unigram") != file_.vocab_is_scored) {
    return model.error(fmt::format(
        "vocab of {} must be {}", row->name,
        row->name == "Unigram" ? "an array of [text, score]" : "an object from text to id"));
  }
  DUNLIN_ASSIGN(table, make_table());
  table_ = std::move(table);
  DUNLIN_ASSIGN(made, (this->*row->load)(model));
  return LoadedModel{std::move(table_), std::move(made)};
}

Result<std::unique_ptr<TokenTable>> Loader::make_table() const {
  std::size_t num_bytes = 0;
  for (const std::string& text : vocab_.texts) num_bytes += text.size();
  auto table = std::make_unique<TokenTable>(vocab_.texts.size(), num_bytes);
  std::vector<TokenId> findable;
  for (TokenId id = 0; id < vocab_.size(); ++id) {
    const auto idx = static_cast<std::size_t>(id);
    table->add(vocab_.texts[idx]);
    if (vocab_.in_model[idx] && !vocab_.is_control(id) && !vocab_.texts[idx].empty()) {
      findable.push_back(id);
    }
  }
  if (file_.vocab_is_scored) {
    // Of equal texts the last one counts.
    std::unordered_map<std::string_view, TokenId> last;
    last.reserve(findable.size());
    for (TokenId id : findable) last[table->text(id)] = id;
    std::erase_if(findable, [&](TokenId id) { return last[table->text(id)] != id; });
  }
  if (const auto twins = table->insert(findable)) {
    return invalid(fmt::format("tokenizer.json.model.vocab: tokens {} and {} are both {}",
                               twins->first, twins->second,
                               quote_for_message(table->text(twins->first))));
  }
  return table;
}

// Any token of the model, control tokens included.
TokenId Loader::find_any(const std::string& text) const {
  const TokenId id = table_->find(text);
  if (id >= 0) return id;
  if (unfindable_.empty()) {
    for (TokenId other = 0; other < vocab_.size(); ++other) {
      if (vocab_.is_control(other)) unfindable_.emplace(table_->text(other), other);
    }
    unfindable_.emplace("", -1);
  }
  const auto found = unfindable_.find(text);
  return found == unfindable_.end() ? -1 : found->second;
}

Result<TokenId> Loader::read_unknown(const JsonView& model) const {
  if (!model.has("unk_token")) return -1;
  DUNLIN_ASSIGN(text, model.string("unk_token"));
  TokenId id = find_any(text);
  for (const AddedToken& token : vocab_.added) {
    if (id < 0 && token.content == text) id = token.id;
  }
  if (id < 0) return model.error(fmt::format("unk_token {} is no token", quote_for_message(text)));
  return id;
}

std::array<TokenId, 256> Loader::find_bytes() const {
  std::array<TokenId, 256> ids;
  for (std::size_t byte = 0; byte < ids.size(); ++byte) {
    ids[byte] = find_any(fmt::format("<0x{:02X}>", byte));
  }
  return ids;
}

Result<MergeTable> Loader::load_merges(std::size_t prefix_size, BpeOptions& options) const {
  MergeTable merges(file_.merges.size());
  const auto is_byte = [&](TokenId id) {
    return std::find(options.byte_ids.begin(), options.byte_ids.end(), id) !=
           options.byte_ids.end();
  };
  std::string merged;
  // The last of equal pairs counts, and the table keeps the first.
  for (std::size_t rank = file_.merges.size(); rank-- > 0;) {
    const std::string& left = file_.merges[rank].first;
    const std::string& right = file_.merges[rank].second;
    const auto bad = [&](std::string_view what) {
      return invalid(fmt::format("tokenizer.json.model.merges: entry {} ({}) {}", rank,
                                 quote_for_message(left + " " + right), what));
    };
    const TokenId left_id = find_any(left);
    if (left_id < 0)
      return bad(fmt::format("names {}, which is no token", quote_for_message(left)));
    const TokenId right_id = find_any(right);
    if (right_id < 0)
      return bad(fmt::format("names {}, which is no token", quote_for_message(right)));
    if (right.size() < prefix_size) return bad("is shorter than the prefix of continuations");
    merged.assign(left).append(right, prefix_size);
    const TokenId merged_id = find_any(merged);
    if (merged_id < 0)
      return bad(fmt::format("makes {}, which is no token", quote_for_message(merged)));
    // Ordinary text never becomes a control token.
    if (vocab_.is_control(merged_id)) continue;
    const bool plain = !vocab_.is_control(left_id) && !vocab_.is_control(right_id);
    const bool special = left_id == options.unknown_id || right_id == options.unknown_id ||
                         left.starts_with("<0x") || right.starts_with("<0x");
    if (special && (is_byte(left_id) || is_byte(right_id) || left_id == options.unknown_id ||
                    right_id == options.unknown_id)) {
      options.merges_plain_only = false;
    } else if (!plain) {
      continue;
    }
    merges.insert(left_id, right_id, {static_cast<std::uint32_t>(rank), merged_id});
  }
  return merges;
}

Result<std::unique_ptr<TokenModel>> Loader::load_bpe(const JsonView& model) {
  if (model.has("dropout") && model.value()["dropout"] != 0) {
    return model.error("dropout makes ids random; only null is supported");
  }
  BpeOptions options;
  options.byte_ids.fill(-1);
  DUNLIN_ASSIGN(unknown_id, read_unknown(model));
  DUNLIN_ASSIGN(fuse_unknown, model.boolean_or("fuse_unk", false));
  DUNLIN_ASSIGN(byte_fallback, model.boolean_or("byte_fallback", false));
  DUNLIN_ASSIGN(ignore_merges, model.boolean_or("ignore_merges", false));
  DUNLIN_ASSIGN(prefix, model.string_or("continuing_subword_prefix", ""));
  DUNLIN_ASSIGN(suffix, model.string_or("end_of_word_suffix", ""));
  if (byte_fallback && !(prefix.empty() && suffix.empty())) {
    return model.error("byte_fallback together with a prefix or a suffix is not supported");
  }
  options.unknown_id = unknown_id;
  options.fuse_unknown = fuse_unknown;
  if (byte_fallback) options.byte_ids = find_bytes();
  options.continuing_prefix = std::move(prefix);
  options.end_suffix = std::move(suffix);
  options.whole_pieces_first = ignore_merges;
  if (!file_.has_merges) return model.error("merges is missing");
  DUNLIN_ASSIGN(merges, load_merges(options.continuing_prefix.size(), options));
  return std::make_unique<BpeModel>(*table_, std::move(merges), std::move(options));
}

Result<std::unique_ptr<TokenModel>> Loader::load_unigram(const JsonView& model) {
  const auto size = static_cast<int>(vocab_.scores.size());
  DUNLIN_ASSIGN(unknown_id, model.integer("unk_id", 0, size - 1));
  DUNLIN_ASSIGN(byte_fallback, model.boolean_or("byte_fallback", false));
  std::array<TokenId, 256> byte_ids;
  byte_ids.fill(-1);
  if (byte_fallback) byte_ids = find_bytes();
  return std::make_unique<UnigramModel>(*table_, vocab_.scores, unknown_id, byte_ids);
}

Result<std::unique_ptr<TokenModel>> Loader::load_wordpiece(const JsonView& model) {
  DUNLIN_ASSIGN(unknown_id, read_unknown(model));
  if (unknown_id < 0) return model.error("unk_token is missing");
  DUNLIN_ASSIGN(prefix, model.string_or("continuing_subword_prefix", "##"));
  DUNLIN_ASSIGN(max_characters, model.integer_or("max_input_chars_per_word", 100, 0, 10000));
  return std::make_unique<WordPieceModel>(*table_, unknown_id, std::move(prefix),
                                          static_cast<std::size_t>(max_characters));
}

}  // namespace

Result<LoadedModel> load_model(const TokenizerFile& file, const HfVocab& vocab) {
  return Loader(file, vocab).load();
}

}  // namespace dunlin::hf
