// Hugging Face folders whose weights are numbers of a counter: tests/golden/shapes.tar.xz keeps
// names, sizes and seeds only, and the test writes the safetensors file that the reference read.
//
// Element i (from 1) of a tensor is centre + amplitude * u with u in [-1, 1) from the upper 24 bits
// of splitmix64 at (seed << 32) + i (Steele, Lea, Flood: "Fast splittable pseudorandom number
// generators", 2014), computed in double and rounded to float once, so every machine has the same.
#pragma once

#include <string>

namespace dunlin::testing {

// Copies FROM/config.json to the folder `to` and writes to/model.safetensors as FROM/tensors.json
// says. Throws what nlohmann::json throws where a file is not as make_shapes.py writes it.
void write_seeded_checkpoint(const std::string& from, const std::string& to);

}  // namespace dunlin::testing
