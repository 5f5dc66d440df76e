// A model on disk in one canonical form, whatever the container: GGUF's metadata keys and tensor
// names. Architectures read their numbers from it, the loader its weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dunlin/status.h"
#include "formats/weight_source.h"

namespace dunlin {

using MetadataValue =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                 std::vector<double>, std::vector<std::string>>;

struct CheckpointTensor {
  std::string name;
  TensorView view;                    // data: null where it has to be prepared
  std::vector<TensorView> sources{};  // the stored tensors that it is made of then
};

class Checkpoint : public WeightSource {
 public:
  // For messages: the file, or the folder.
  virtual const std::string& path() const = 0;
  // The value of a key ("general.architecture"); nullopt where there is none.
  virtual std::optional<MetadataValue> metadata(std::string_view key) const = 0;
  // All tensors under their canonical names; those that have none under their own. Thread-safe,
  // even beside prepare() and discard().
  virtual std::vector<CheckpointTensor> tensors() const = 0;
  // A message about a key or a tensor in the words of the container: it may have other names.
  virtual Status in_own_words(Status status) const { return status; }
  // kDataLoss where a file was shortened or grew since it was opened.
  virtual Outcome check_unchanged() const = 0;
};

}  // namespace dunlin
