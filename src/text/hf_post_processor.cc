#include "text/hf_post_processor.h"

namespace dunlin::hf {
namespace {

constexpr int kMaxDepth = 8;  // of sequences in sequences
constexpr std::size_t kMaxAdded = 64;

struct Context {
  int vocab_size;
  int depth;
};

Outcome append_special(const JsonView& view, std::string_view name, const Context& context,
                       std::vector<TokenId>& ids) {
  DUNLIN_ASSIGN(specials, view.object("special_tokens"));
  DUNLIN_ASSIGN(special, specials.object(name));
  const auto& value = special.value();
  const auto found = value.find("ids");
  if (found == value.end() || !found->is_array()) return special.error("ids must be an array");
  for (const auto& id : *found) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= std::uint64_t(context.vocab_size)) {
      return special.error(
          fmt::format("ids must be integers below the vocabulary's size, {}", context.vocab_size));
    }
    if (ids.size() >= kMaxAdded) return view.error(fmt::format("adds more than {}", kMaxAdded));
    ids.push_back(id.get<TokenId>());
  }
  return {};
}

Outcome read_template(const JsonView& view, const Context& context, AddedAround& out) {
  DUNLIN_ASSIGN(parts, view.array("single"));
  std::vector<TokenId> before, behind;
  bool seen_text = false;
  for (const JsonView& part : parts) {
    if (part.has("SpecialToken")) {
      DUNLIN_ASSIGN(special, part.object("SpecialToken"));
      DUNLIN_ASSIGN(name, special.string("id"));
      DUNLIN_TRY(append_special(view, name, context, seen_text ? behind : before));
      continue;
    }
    DUNLIN_ASSIGN(text, part.object("Sequence"));
    DUNLIN_ASSIGN(name, text.string("id"));
    if (name != "A" || seen_text) return part.error("must be the text A, once");
    seen_text = true;
  }
  if (!seen_text) return view.error("single must have the text A");
  out.prefix_ids.insert(out.prefix_ids.begin(), before.begin(), before.end());
  out.suffix_ids.insert(out.suffix_ids.end(), behind.begin(), behind.end());
  return {};
}

// ["TEXT", id] at `key`.
Result<TokenId> read_pair(const JsonView& view, const char* key, const Context& context) {
  const auto& value = view.value();
  const auto found = value.find(key);
  if (found == value.end() || !found->is_array() || found->size() != 2 ||
      !(*found)[1].is_number_unsigned() ||
      (*found)[1].get<std::uint64_t>() >= std::uint64_t(context.vocab_size)) {
    return view.error(fmt::format("{} must be a text and an id of the vocabulary", key));
  }
  return (*found)[1].get<TokenId>();
}

Outcome read_bert(const JsonView& view, const Context& context, AddedAround& out) {
  DUNLIN_ASSIGN(cls, read_pair(view, "cls", context));
  DUNLIN_ASSIGN(sep, read_pair(view, "sep", context));
  out.prefix_ids.insert(out.prefix_ids.begin(), cls);
  out.suffix_ids.push_back(sep);
  return {};
}

// Changes only offsets.
Outcome read_byte_level(const JsonView&, const Context&, AddedAround&) { return {}; }

Outcome read_sequence(const JsonView& view, const Context& context, AddedAround& out);

struct Row {
  std::string_view name;
  Outcome (*read)(const JsonView& view, const Context& context, AddedAround& out);
};
constexpr Row kTypes[] = {
    {"Sequence", read_sequence},    {"TemplateProcessing", read_template},
    {"BertProcessing", read_bert},  {"RobertaProcessing", read_bert},
    {"ByteLevel", read_byte_level},
};

Outcome read_any(const JsonView& view, const Context& context, AddedAround& out) {
  DUNLIN_ASSIGN(row, find_named(view, "type", std::span<const Row>(kTypes)));
  return row->read(view, context, out);
}

// Each one works on what those before it made, so that its tokens stand farther outside.
Outcome read_sequence(const JsonView& view, const Context& context, AddedAround& out) {
  if (context.depth >= kMaxDepth) return view.error("sequences are nested too deeply");
  DUNLIN_ASSIGN(members, view.array("processors"));
  if (members.size() > kMaxAdded) return view.error("has too many members");
  for (const JsonView& member : members) {
    DUNLIN_TRY(read_any(member, {context.vocab_size, context.depth + 1}, out));
    if (out.prefix_ids.size() + out.suffix_ids.size() > kMaxAdded) {
      return view.error(fmt::format("adds more than {}", kMaxAdded));
    }
  }
  return {};
}

}  // namespace

Result<AddedAround> read_post_processor(const JsonView& file, int vocab_size) {
  AddedAround out;
  if (!file.has("post_processor")) return out;
  DUNLIN_ASSIGN(view, file.object("post_processor"));
  DUNLIN_TRY(read_any(view, {vocab_size, 0}, out));
  return out;
}

Result<AddedAround> read_added_around(const JsonView& file, const HfVocab& vocab,
                                      const HfTokenizerConfig& config) {
  DUNLIN_ASSIGN(around, read_post_processor(file, vocab.size()));
  if (!config.add_bos_token && !config.add_eos_token) return around;
  around = {};
  if (config.add_bos_token.value_or(false) && vocab.bos_id >= 0) {
    around.prefix_ids.push_back(vocab.bos_id);
  }
  if (config.add_eos_token.value_or(false) && vocab.eos_id >= 0) {
    around.suffix_ids.push_back(vocab.eos_id);
  }
  return around;
}

}  // namespace dunlin::hf
