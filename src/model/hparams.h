// Reads an architecture's numbers from a checkpoint's metadata: "block_count" means
// "ARCH.block_count".
//
// Errors stick: the first one is kept, later reads give harmless values, and the caller asks for
// outcome() once at the end. So an architecture's file reads as a list of keys. One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "formats/checkpoint.h"

namespace dunlin {

class Hparams {
 public:
  Hparams(const Checkpoint& checkpoint, std::string_view architecture)
      : checkpoint_(checkpoint), architecture_(architecture) {}

  // An integer of at least `min` and at most `max`. A missing key is an error that names it,
  // unless `if_missing` is given. An array with one number a layer is taken where all are equal.
  int count(std::string_view key, int min, int max, std::optional<int> if_missing = std::nullopt);
  // A finite number.
  float number(std::string_view key, std::optional<float> if_missing = std::nullopt);
  std::string word(std::string_view key, std::string_view if_missing);
  bool flag(std::string_view key, bool if_missing);
  // An array of integers or booleans; empty where it is missing.
  std::vector<std::int64_t> integers(std::string_view key);

  bool has(std::string_view key) const;
  bool has_tensor(std::string_view name) const { return checkpoint_.find(name).has_value(); }
  const Checkpoint& checkpoint() const { return checkpoint_; }

  // Records an error of the caller's; the message gets the path in front.
  void refuse(StatusCode code, std::string message);

  Outcome outcome() const;

 private:
  std::string full_key(std::string_view key) const;
  void refuse_type(const std::string& key, std::string_view wanted);
  std::optional<std::int64_t> uniform_integer(const std::string& key, const MetadataValue& value);

  const Checkpoint& checkpoint_;
  std::string architecture_;
  std::optional<Status> error_;
};

}  // namespace dunlin
