// One expression of Hugging Face's dialect (regex_dialect.h), searched for in UTF-8 text.
#pragma once

#include <string_view>

#include "base/function_ref.h"
#include "dunlin/status.h"
#include "text/byte_alphabet.h"
#include "text/byte_regex.h"
#include "text/regex_dialect.h"

namespace dunlin {

class TextRegex {
 public:
  // kInvalidArgument where the expression can't be used.
  static Result<TextRegex> make(std::string_view expression);
  static Result<TextRegex> make(const ParsedRegex& parsed);

  using Sink = FunctionRef<void(std::size_t begin, std::size_t end)>;

  // Gives the matches in `text`, valid UTF-8, in order. A match may be empty, but not directly
  // behind another. Thread-safe; `scratch` is one thread's. Time as ByteRegex::find says.
  void for_each_match(std::string_view text, ByteRegex::Scratch& scratch, Sink sink) const;

 private:
  TextRegex(ByteAlphabet alphabet, ByteRegex expression)
      : alphabet_(std::move(alphabet)), expression_(std::move(expression)) {}

  ByteAlphabet alphabet_;
  ByteRegex expression_;
};

}  // namespace dunlin
