// `dunlin debug template` as a function, for tests.
#pragma once

#include <iosfwd>

namespace dunlin::cli {

// Reads one JSON object a line, {"id","template","vars","now"}, and answers each in order with
// {"id","ok":true,"output"} or {"id","ok":false,"error"}. Without "now" it is the present. With
// `segments`, an answer also has "segments": [[text, is_input], ...]. Blank lines are passed over.
void debug_template(std::istream& in, std::ostream& out, bool segments);

}  // namespace dunlin::cli
