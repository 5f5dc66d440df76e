// Where SentencePiece's models put a space that no text has.
#pragma once

#include <string_view>

namespace dunlin {

// Named as in tokenizer.json's Metaspace. A text that has a space there already gets none.
enum class PrependScheme {
  kAlways,  // in front of the text and behind every special token
  kFirst,   // in front of the text only
  kNever,
};

struct PrependSchemeName {
  std::string_view name;
  PrependScheme scheme;
};
inline constexpr PrependSchemeName kPrependSchemes[] = {{"always", PrependScheme::kAlways},
                                                        {"first", PrependScheme::kFirst},
                                                        {"never", PrependScheme::kNever}};

}  // namespace dunlin
