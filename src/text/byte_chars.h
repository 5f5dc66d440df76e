// GPT-2's way to write bytes as printable characters (Radford et al. 2019): printable bytes of
// Latin-1 stand for themselves, the other 68 are U+0100 and on in ascending order. Vocabularies of
// byte-level BPE are stored so: "Ġthe" is " the".
#pragma once

#include <string>
#include <string_view>

namespace dunlin {

// Appends the bytes that `chars` stands for; false where a character stands for no byte (`out` is
// then as before).
bool append_bytes_of_chars(std::string_view chars, std::string& out);

// The character for a byte, as UTF-8.
std::string char_of_byte(unsigned char byte);

}  // namespace dunlin
