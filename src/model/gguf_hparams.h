// Reads an architecture's numbers from GGUF metadata: "block_count" means "ARCH.block_count".
//
// Errors stick: the first one is kept, later reads give harmless values, and the caller asks for
// outcome() once at the end. So an architecture's file reads as a list of keys. One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "dunlin/status.h"
#include "formats/gguf.h"

namespace dunlin {

class GgufHparams {
 public:
  GgufHparams(const GgufFile& file, std::string_view architecture)
      : file_(file), architecture_(architecture) {}

  // An integer of at least `min` and at most `max`. A missing key is an error that names it,
  // unless `if_missing` is given. An array with one number a layer is taken where all are equal.
  int count(std::string_view key, int min, int max, std::optional<int> if_missing = std::nullopt);
  // A finite number.
  float number(std::string_view key, std::optional<float> if_missing = std::nullopt);
  std::string_view word(std::string_view key, std::string_view if_missing);

  bool has(std::string_view key) const { return file_.has(full_key(key)); }
  bool has_tensor(std::string_view name) const { return file_.find_tensor(name) != nullptr; }
  const GgufFile& file() const { return file_; }

  // Records an error of the caller's; the message gets the file in front.
  void refuse(StatusCode code, std::string message);

  Outcome outcome() const;

 private:
  std::string full_key(std::string_view key) const;
  void keep(const Status& status);
  std::optional<std::int64_t> uniform_integer(const std::string& key);

  const GgufFile& file_;
  std::string architecture_;
  std::optional<Status> error_;
};

}  // namespace dunlin
