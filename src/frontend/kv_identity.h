// What the bits of a KV block depend on besides its tokens, as one name: two processes of equal
// identity may exchange blocks (kv/disk_tier.h).
#pragma once

#include <memory>
#include <string>

#include "formats/checkpoint.h"
#include "kv/prefix_key.h"
#include "model/model.h"

namespace dunlin {

// XXH3 of all tensors: their names, types, shapes and bytes. Reads the files whole.
std::string weights_hash(const Checkpoint& checkpoint);

// SHA-256 of the weights' hash, the KV layout and the model's logits for a fixed text. The logits
// stand for all that has no name: the instruction set's order of sums, how kernels round, what
// became of the metadata. Whatever changes in a kernel changes some bit of them, and nobody has to
// remember to count up a version. Calls model.reserve().
PrefixKey kv_identity(const std::string& weights, Model& model);

}  // namespace dunlin
