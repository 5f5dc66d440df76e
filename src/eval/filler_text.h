// Sentences that say little, for haystacks: harmless, and none holds a number or a quotation mark.
#pragma once

#include <cstdint>
#include <string>

namespace dunlin::eval {

// Sentence `idx` of text `stream`, without a space at either end. The same on every machine.
std::string filler_sentence(std::uint64_t seed, std::uint32_t stream, std::uint64_t idx);

}  // namespace dunlin::eval
