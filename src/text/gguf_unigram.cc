#include "text/gguf_unigram.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/base64.h"
#include "text/gguf_refusal.h"

namespace dunlin {
namespace {

using hf::JsonView;

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581

// The steps' names in order, with what of their options matters.
struct Chain {
  std::vector<std::string> steps;
  std::string charsmap;
  bool cuts_at_spaces = false;

  std::string text() const { return fmt::format("{}", fmt::join(steps, ", ")); }
};

Result<std::string> name_replace(const JsonView& view) {
  DUNLIN_ASSIGN(pattern, view.object("pattern"));
  DUNLIN_ASSIGN(text, pattern.string_or("String", ""));
  DUNLIN_ASSIGN(expression, pattern.string_or("Regex", ""));
  DUNLIN_ASSIGN(content, view.string("content"));
  if (text == " " && content == kSpace) return "mark";
  // What becomes U+2581 here would become it later.
  if (expression == " {2,}" && (content == " " || content == kSpace)) return "merge";
  return fmt::format("Replace {}{}", text, expression);
}

Result<std::string> name_metaspace(const JsonView& view, Chain& chain) {
  DUNLIN_ASSIGN(replacement, view.string_or("replacement", kSpace));
  DUNLIN_ASSIGN(prefix, view.boolean_or("add_prefix_space", true));
  DUNLIN_ASSIGN(scheme, view.string_or("prepend_scheme", prefix ? "always" : "never"));
  DUNLIN_ASSIGN(cuts, view.boolean_or("split", true));
  if (replacement != kSpace) return gguf_cannot_say(view, "another character for spaces");
  chain.cuts_at_spaces |= cuts;
  return "Metaspace " + scheme;
}

Result<std::string> name_step(const JsonView& view, Chain& chain) {
  DUNLIN_ASSIGN(type, view.string("type"));
  if (type == "Precompiled") {
    DUNLIN_ASSIGN(encoded, view.string_or("precompiled_charsmap", ""));
    auto decoded = decode_base64(encoded);
    if (!decoded) return view.error("precompiled_charsmap is not base64");
    if (!chain.charsmap.empty()) return gguf_cannot_say(view, "a second map of characters");
    chain.charsmap = std::move(*decoded);
    return chain.charsmap.empty() ? "" : "map";
  }
  if (type == "Strip") {
    DUNLIN_ASSIGN(right, view.boolean_or("strip_right", true));
    return right ? "strip" : "Strip left";
  }
  if (type == "Replace") return name_replace(view);
  if (type == "Metaspace") return name_metaspace(view, chain);
  if (type == "Prepend") {
    DUNLIN_ASSIGN(text, view.string("prepend"));
    return text == kSpace ? "prepend" : "Prepend " + text;
  }
  if (type == "WhitespaceSplit") {
    chain.cuts_at_spaces = true;
    return "words";
  }
  return type;
}

Outcome add_steps(const JsonView& view, Chain& chain) {
  for (const char* key : {"normalizers", "pretokenizers"}) {  // a sequence's
    if (!view.has(key)) continue;
    DUNLIN_ASSIGN(steps, view.array(key));
    for (const JsonView& step : steps) DUNLIN_TRY(add_steps(step, chain));
    return {};
  }
  DUNLIN_ASSIGN(name, name_step(view, chain));
  if (!name.empty()) chain.steps.push_back(std::move(name));
  return {};
}

// Strip takes away more than spaces, and cutting at all white space forgets which it was, unless a
// map has made spaces of the rest before.
struct Row {
  std::string_view steps;
  bool adds_space_prefix, removes_extra_spaces;
};
constexpr Row kChains[] = {
    {"map, strip, merge, Metaspace always", true, true},
    {"map, strip, merge, words, Metaspace always", true, true},
    {"map, words, Metaspace always", true, true},
    {"map, merge, words, Metaspace always", true, true},
    {"map, prepend, mark", true, false},
    {"prepend, mark", true, false},
    {"map, mark", false, false},
    {"mark", false, false},
    {"map, Metaspace never", false, false},
    {"Metaspace never", false, false},
};

}  // namespace

Result<UnigramSteps> read_unigram_steps(const JsonView& root, bool has_inner_spaces) {
  Chain chain;
  for (const char* key : {"normalizer", "pre_tokenizer"}) {
    if (!root.has(key)) continue;
    DUNLIN_ASSIGN(step, root.object(key));
    DUNLIN_TRY(add_steps(step, chain));
  }
  const std::string steps = chain.text();
  for (const Row& row : kChains) {
    if (row.steps != steps) continue;
    if (chain.cuts_at_spaces && has_inner_spaces) {
      return gguf_cannot_say(root, "text is cut at spaces that are inside of tokens");
    }
    return UnigramSteps{std::move(chain.charsmap), row.adds_space_prefix, row.removes_extra_spaces};
  }
  return gguf_cannot_say(root, fmt::format("Unigram with the steps ({})", steps));
}

}  // namespace dunlin
