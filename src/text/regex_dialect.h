// Pre-tokenizer expressions as Hugging Face's tokenizers understand them (Oniguruma, Ruby syntax,
// Unicode), taken apart into sets of code points and the ASCII syntax between them, so that they
// can run over any alphabet of bytes (byte_alphabet.h).
//
// Kept: alternation, groups, greedy, lazy and possessive quantifiers, lookaround, atomic groups,
// (?i) over ASCII letters (which also match U+017F and U+212A, as case folding says).
// Given their meaning there: \s \S (White_Space), \d \D \w \W, \h \H (hexadecimal digits), ^ $ (at
// line ends), \A \z \Z, \p{..} \P{..} \p{^..} of general categories, {,n}.
// Refused by name: back references, \b, \X, \R, \K, \G, subexpression calls, POSIX and nested
// classes, &&, scripts, {n,m}+ (which repeats there and is possessive elsewhere), other options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "text/code_point_set.h"

namespace dunlin {

struct RegexPiece {
  std::string syntax;  // PCRE2 text, ASCII; empty where this is a set
  int set_idx = -1;    // one character out of sets[set_idx]
};

struct ParsedRegex {
  std::vector<RegexPiece> pieces;
  std::vector<CodePointSet> sets;  // no duplicates
};

// kInvalidArgument with the byte and what can't be translated.
Result<ParsedRegex> parse_huggingface_regex(std::string_view pattern);

}  // namespace dunlin
