// Cuts text at the matches of a pattern, in the five ways of Hugging Face's Split.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/function_ref.h"
#include "dunlin/status.h"
#include "text/code_point_set.h"
#include "text/json_view.h"
#include "text/text_regex.h"

namespace dunlin::hf {

// A regular expression, or a text that is not empty.
class Pattern {
 public:
  static Result<Pattern> literal(std::string text);
  static Result<Pattern> regex(std::string_view expression);
  static Result<Pattern> regex(const ParsedRegex& parsed);
  static Pattern one_of(const CodePointSet& set);  // each character by itself
  static Pattern runs_of(const CodePointSet& set);
  // {"String": ".."} or {"Regex": ".."} at `key`.
  static Result<Pattern> make(const JsonView& view, std::string_view key);

  // As TextRegex::for_each_match.
  void for_each_match(std::string_view text, ByteRegex::Scratch& scratch,
                      TextRegex::Sink sink) const;
  // How many times longer a text can become at most where each match becomes `content`.
  std::size_t growth(std::string_view content) const;

 private:
  explicit Pattern(std::variant<std::string, TextRegex> matcher) : matcher_(std::move(matcher)) {}
  std::variant<std::string, TextRegex> matcher_;
};

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

Result<SplitBehavior> read_split_behavior(const JsonView& view, std::string_view otherwise);

struct Splitter {
  Pattern pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // what the pattern does not match counts as matched

  using Sink = FunctionRef<void(std::string_view piece)>;
  // Gives the pieces of `text` in order, none of them empty. Thread-safe.
  void split(std::string_view text, ByteRegex::Scratch& scratch, Sink sink) const;
};

}  // namespace dunlin::hf
