#include "model/hf_checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/quote.h"
#include "formats/hf_config.h"
#include "model/hf_import.h"
#include "model/hf_names.h"
#include "model/hf_pooling.h"
#include "model/hf_refusals.h"

namespace dunlin {

Outcome HfCheckpoint::add(const HfConfig& config, const HfTensor& stored, std::string name,
                          HfTransform transform) {
  if (!stored.readable) {
    return fail(StatusCode::kUnimplemented,
                fmt::format("{}: tensor {} is stored as {} in a shape or type that is not "
                            "supported yet",
                            folder_, quote_for_message(stored.name), stored.stored_type));
  }
  Entry entry{stored.tensor};
  if (transform != nullptr) {
    auto made = transform(config, stored.tensor);
    if (!made) {
      return tl::unexpected<Status>(made.error().with_prefix(
          fmt::format("{}: tensor {}", folder_, quote_for_message(stored.name))));
    }
    entry.tensor = std::move(*made);
  }
  const auto [place, is_new] = tensors_.emplace(name, std::move(entry));
  if (!is_new) {
    return invalid(fmt::format("{}: two tensors would be {} of the model, one of them {}", folder_,
                               quote_for_message(name), quote_for_message(stored.name)));
  }
  if (place->second.tensor.view.rank == 1) prepare(name);  // norms and biases are small
  return {};
}

Outcome HfCheckpoint::add_stored(const HfImport& import, const Architecture& architecture) {
  const HfConfig& config = import.config();
  // A tied output layer that is stored all the same is the embedding once more.
  const bool tied = config.flag("tie_word_embeddings", false);
  auto tensors = readable_tensors(config, *weights_);
  if (!tensors) {
    const bool names_file = tensors.error().message().starts_with(folder_);
    return names_file ? tl::unexpected<Status>(tensors.error())
                      : tl::unexpected<Status>(tensors.error().with_prefix(folder_));
  }
  for (const HfTensor& stored : *tensors) {
    if (import.ignores(stored.name)) continue;
    std::vector<CanonicalName> names = canonical_names(architecture, stored.name);
    // Whoever checks the tensors against the model refuses what is none of it by this name.
    if (names.empty()) names.push_back({stored.name, nullptr});
    for (CanonicalName& canonical : names) {
      if (canonical.name.empty() || (tied && canonical.name == "output.weight")) continue;
      DUNLIN_TRY(add(config, stored, std::move(canonical.name), canonical.transform));
    }
  }
  return {};
}

void HfCheckpoint::add_vectors() {
  for (const auto& [name, values] : vectors_) {
    TensorView view;
    view.dtype = DType::kF32;
    view.rank = 1;
    view.shape = {static_cast<std::int64_t>(values.size()), 1, 1, 1};
    view.data = reinterpret_cast<const std::byte*>(values.data());
    tensors_[name] = Entry{stored_tensor(view)};
  }
}

Result<std::shared_ptr<const HfCheckpoint>> HfCheckpoint::open(const std::string& folder) {
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(folder + "/config.json", ignored))) {
    return fail(StatusCode::kNotFound,
                fmt::format("{}: has no config.json; {}", folder, folder_advice(folder)));
  }
  DUNLIN_ASSIGN(config, HfConfig::read(folder, "config.json"));
  DUNLIN_ASSIGN(architecture, hf_architecture(config));
  HfImport import(config, *architecture);
  DUNLIN_TRY(import.run());
  DUNLIN_ASSIGN(pooling, read_folder_pooling(folder));
  if (pooling) import.set_pooling(*pooling);
  std::shared_ptr<HfCheckpoint> checkpoint(new HfCheckpoint());
  checkpoint->folder_ = folder;
  DUNLIN_ASSIGN(weights, Safetensors::open_folder(folder));
  checkpoint->weights_ = std::move(weights);
  checkpoint->metadata_ = import.take_metadata();
  checkpoint->vectors_ = import.take_vectors();
  DUNLIN_TRY(checkpoint->add_stored(import, *architecture));
  // What folders of embedding models need is no head.
  refuse_contradictions(config, architecture->hf_has_head && !pooling,
                        [&](std::string_view name) { return checkpoint->tensors_.contains(name); });
  DUNLIN_TRY(config.outcome());
  checkpoint->add_vectors();
  return checkpoint;
}

std::optional<MetadataValue> HfCheckpoint::metadata(std::string_view key) const {
  const auto it = metadata_.find(key);
  if (it == metadata_.end()) return std::nullopt;
  return it->second;
}

Status HfCheckpoint::in_own_words(Status status) const {
  std::string message = status.message();
  const bool is_of_config = replace_keys(metadata_, message);
  if (is_of_config && message.starts_with(folder_ + ": "))
    message.insert(folder_.size(), "/config.json");
  replace_tensor(message);
  return Status(status.code(), std::move(message));
}

// "tensor blk.0.attn_q.weight" by what the files call it, if it is in one.
void HfCheckpoint::replace_tensor(std::string& message) const {
  constexpr std::string_view kBefore = "tensor ";
  std::size_t begin = message.find(kBefore);
  if (begin == message.npos) return;
  begin += kBefore.size();
  if (message.compare(begin, 1, "'") == 0) ++begin;
  const std::size_t end = std::min(message.find_first_of("': ", begin), message.size());
  const std::string name = message.substr(begin, end - begin);
  const Architecture& architecture =
      *find_architecture(std::get<std::string>(metadata_.find("general.architecture")->second));
  for (const SafetensorsTensor& stored : weights_->tensors()) {
    const auto names = canonical_names(architecture, stored.name);
    const bool is_it = std::any_of(names.begin(), names.end(),
                                   [&](const CanonicalName& made) { return made.name == name; });
    if (!is_it) continue;
    message.replace(begin, end - begin, stored.name);
    return;
  }
}

std::vector<CheckpointTensor> HfCheckpoint::tensors() const {
  std::vector<CheckpointTensor> tensors;
  tensors.reserve(tensors_.size());
  for (const auto& [name, entry] : tensors_) {
    // What is made of a vector is there from the beginning, and nothing changes it.
    const bool is_vector = entry.tensor.view.rank == 1;
    tensors.push_back({name, is_vector ? entry.view() : entry.tensor.view,
                       entry.tensor.fill ? entry.tensor.sources : std::vector<TensorView>()});
  }
  return tensors;
}

std::optional<TensorView> HfCheckpoint::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) return std::nullopt;
  return it->second.view();
}

void HfCheckpoint::prepare(std::string_view name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end() || !it->second.tensor.fill || !it->second.made.empty()) return;
  Entry& entry = it->second;
  entry.made.resize(static_cast<std::size_t>(entry.tensor.view.size_bytes()));
  entry.tensor.fill(entry.made.data());
  for (const TensorView& source : entry.tensor.sources) weights_->drop_pages(source);
}

void HfCheckpoint::discard(std::string_view name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end() || it->second.tensor.view.rank == 1) return;
  it->second.made = {};
}

}  // namespace dunlin
