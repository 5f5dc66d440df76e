#include "text/text_split.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace dunlin::hf {

Result<Pattern> Pattern::literal(std::string text) {
  if (text.empty()) return invalid("an empty text can't be searched for");
  return Pattern(std::move(text));
}

Result<Pattern> Pattern::regex(std::string_view expression) {
  DUNLIN_ASSIGN(compiled, TextRegex::make(expression));
  return Pattern(std::move(compiled));
}

Result<Pattern> Pattern::regex(const ParsedRegex& parsed) {
  DUNLIN_ASSIGN(compiled, TextRegex::make(parsed));
  return Pattern(std::move(compiled));
}

namespace {

TextRegex regex_of_set(const CodePointSet& set, std::string_view quantifier) {
  ParsedRegex parsed;
  parsed.sets.push_back(set);
  parsed.pieces.push_back({"", 0});
  if (!quantifier.empty()) parsed.pieces.push_back({std::string(quantifier), -1});
  auto made = TextRegex::make(parsed);
  DUNLIN_CHECK(made.has_value(), "an expression of our own");
  return std::move(*made);
}

}  // namespace

Pattern Pattern::one_of(const CodePointSet& set) { return Pattern(regex_of_set(set, "")); }
Pattern Pattern::runs_of(const CodePointSet& set) { return Pattern(regex_of_set(set, "+")); }

Result<Pattern> Pattern::make(const JsonView& view, std::string_view key) {
  DUNLIN_ASSIGN(given, view.object(key));
  const auto with_path = [&](Result<Pattern> made) -> Result<Pattern> {
    if (!made) return tl::unexpected(made.error().with_prefix(given.path()));
    return made;
  };
  if (given.has("String")) {
    DUNLIN_ASSIGN(text, given.string("String"));
    return with_path(literal(std::move(text)));
  }
  if (given.has("Regex")) {
    DUNLIN_ASSIGN(expression, given.string("Regex"));
    return with_path(regex(expression));
  }
  return given.error("must have a member String or Regex");
}

void Pattern::for_each_match(std::string_view text, ByteRegex::Scratch& scratch,
                             TextRegex::Sink sink) const {
  if (const auto* compiled = std::get_if<TextRegex>(&matcher_)) {
    return compiled->for_each_match(text, scratch, sink);
  }
  const std::string& wanted = std::get<std::string>(matcher_);
  for (std::size_t pos = text.find(wanted); pos != std::string_view::npos;
       pos = text.find(wanted, pos + wanted.size())) {
    sink(pos, pos + wanted.size());
  }
}

std::size_t Pattern::growth(std::string_view content) const {
  const auto* wanted = std::get_if<std::string>(&matcher_);
  // An expression may match where there is nothing, before each byte.
  if (wanted == nullptr) return 1 + content.size();
  return std::max<std::size_t>(1, (content.size() + wanted->size() - 1) / wanted->size());
}

namespace {

struct BehaviorName {
  std::string_view name;
  SplitBehavior behavior;
};
constexpr std::array<BehaviorName, 5> kBehaviors = {{
    {"Removed", SplitBehavior::kRemoved},
    {"Isolated", SplitBehavior::kIsolated},
    {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
    {"MergedWithNext", SplitBehavior::kMergedWithNext},
    {"Contiguous", SplitBehavior::kContiguous},
}};

// Takes matches and what stands between them in order, and gives out pieces. One piece is held
// back for as long as the next part may join it.
class PieceMaker {
 public:
  PieceMaker(std::string_view text, SplitBehavior behavior, Splitter::Sink sink)
      : text_(text), behavior_(behavior), sink_(sink) {}

  void add(std::size_t begin, std::size_t end, bool is_match) {
    if (!has_held_ || !joins(is_match)) {
      flush();
      held_begin_ = begin;
      has_held_ = behavior_ != SplitBehavior::kRemoved || !is_match;
    }
    held_end_ = end;
    previous_match_ = is_match;
  }
  void flush() {
    if (has_held_ && held_end_ > held_begin_) {
      sink_(text_.substr(held_begin_, held_end_ - held_begin_));
    }
    has_held_ = false;
  }

 private:
  bool joins(bool is_match) const {
    switch (behavior_) {
      case SplitBehavior::kMergedWithPrevious: return is_match && !previous_match_;
      case SplitBehavior::kMergedWithNext: return !is_match && previous_match_;
      case SplitBehavior::kContiguous: return is_match == previous_match_;
      default: return false;
    }
  }

  std::string_view text_;
  SplitBehavior behavior_;
  Splitter::Sink sink_;
  std::size_t held_begin_ = 0;
  std::size_t held_end_ = 0;
  bool has_held_ = false;
  bool previous_match_ = false;
};

}  // namespace

Result<SplitBehavior> read_split_behavior(const JsonView& view, std::string_view otherwise) {
  if (!view.has("behavior")) {
    for (const BehaviorName& row : kBehaviors) {
      if (row.name == otherwise) return row.behavior;
    }
  }
  DUNLIN_ASSIGN(row, find_named(view, "behavior", std::span<const BehaviorName>(kBehaviors)));
  return row->behavior;
}

void Splitter::split(std::string_view text, ByteRegex::Scratch& scratch, Sink sink) const {
  PieceMaker pieces(text, behavior, sink);
  std::size_t pos = 0;
  pattern.for_each_match(text, scratch, [&](std::size_t begin, std::size_t end) {
    if (begin > pos) pieces.add(pos, begin, invert);
    pieces.add(begin, end, !invert);
    pos = end;
  });
  if (pos < text.size()) pieces.add(pos, text.size(), invert);
  pieces.flush();
}

}  // namespace dunlin::hf
