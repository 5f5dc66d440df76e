// What the pictures share.
#pragma once

#include <string>
#include <string_view>

namespace dunlin::eval {

// Text as it may stand between two tags.
inline std::string svg_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace dunlin::eval
