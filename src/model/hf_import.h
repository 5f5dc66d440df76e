// config.json in the words of GGUF's keys. What all architectures share is said here once; each
// adds its own in its file (Architecture::import).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "formats/checkpoint.h"
#include "formats/hf_config.h"
#include "model/registry.h"

namespace dunlin {

// Puts config.json's names in place of the canonical keys ("llama.block_count") in a message; false
// where it has none. `metadata` is what an import has given.
bool replace_keys(const std::map<std::string, MetadataValue, std::less<>>& metadata,
                  std::string& message);

// The architecture that config.json names. kUnimplemented where it is not here.
Result<const Architecture*> hf_architecture(const HfConfig& config);

// `key`, or its older spelling ("n_embd" for "hidden_size") where config.json has that.
std::string_view spelled(const HfConfig& config, std::string_view key);

class HfImport {
 public:
  HfImport(const HfConfig& config, const Architecture& architecture)
      : config_(config), architecture_(architecture) {}

  const HfConfig& config() const { return config_; }

  // "block_count" for "ARCH.block_count".
  void set(std::string_view key, MetadataValue value);
  void set_integer(std::string_view key, std::int64_t value) { set(key, MetadataValue(value)); }
  void set_number(std::string_view key, double value) { set(key, MetadataValue(value)); }
  // The same where config.json has `hf_key`.
  void copy_integer(std::string_view key, std::string_view hf_key);
  void copy_number(std::string_view key, std::string_view hf_key);
  // pooling_type, GGUF's number of it.
  void set_pooling(Pooling pooling) { set_integer("pooling_type", static_cast<int>(pooling)); }
  // A vector that is no tensor of the checkpoint but follows from config.json.
  void add_vector(std::string_view name, std::vector<float> values);

  // Layers from the model's last one on hold nothing that it needs: predictors of further tokens.
  void ignore_layers_behind() { ignores_layers_behind_ = true; }
  bool ignores(std::string_view hf_name) const;

  std::string_view spelled(std::string_view key) const { return dunlin::spelled(config_, key); }
  std::int64_t head_dim() const;
  // feed_forward_length: `hf_key`, or four times the hidden size where that is missing.
  void set_ffn_size(std::string_view hf_key);
  // What config.json says of rotary positions: rope_parameters, or the older rope_scaling.
  HfConfig rope() const;
  // Rotary positions as `rope` (rope_parameters, or the older rope_scaling) describes them.
  void set_rope(const HfConfig& rope, double theta);

  // What all share, then what the architecture adds. Errors name the file and the key.
  Outcome run();

  std::map<std::string, MetadataValue, std::less<>> take_metadata() { return std::move(metadata_); }
  std::map<std::string, std::vector<float>, std::less<>> take_vectors() {
    return std::move(vectors_);
  }

 private:
  void set_shared();
  void set_shared_rope();
  void set_rope_factors(const HfConfig& rope, double theta, std::int64_t dims);

  const HfConfig& config_;
  const Architecture& architecture_;
  bool ignores_layers_behind_ = false;
  std::map<std::string, MetadataValue, std::less<>> metadata_;
  std::map<std::string, std::vector<float>, std::less<>> vectors_;
};

}  // namespace dunlin
