// Cuts a template into tokens by Jinja's rules, with trim_blocks and lstrip_blocks on, as chat
// templates are written for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace dunlin::jinja {

enum class Tok : std::uint8_t {
  kEof,
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kAdd,
  kSub,
  kDiv,
  kFloorDiv,
  kMul,
  kMod,
  kPow,
  kTilde,
  kLeftBracket,
  kRightBracket,
  kLeftParen,
  kRightParen,
  kLeftBrace,
  kRightBrace,
  kEq,
  kNe,
  kGt,
  kGtEq,
  kLt,
  kLtEq,
  kAssign,
  kDot,
  kColon,
  kPipe,
  kComma,
  kSemicolon,
};

struct Token {
  Tok type;
  std::uint32_t pos;  // byte offset into the source given to tokenize
  std::string text;   // data, name, decoded string
  Int integer = 0;
  double real = 0;
};

// \r\n and \r become \n, and one newline at the very end goes, as Jinja does before all else.
std::string normalise_newlines(std::string_view source);

// All tokens of a normalised source, kEof last. Faults (kSyntax) on what is no template.
std::vector<Token> tokenize(std::string_view source);

// How messages name a token: "end of print statement", "{", the name itself.
std::string describe(const Token& token);
std::string_view describe(Tok type);

}  // namespace dunlin::jinja
