// The weights of a Hugging Face folder: model.safetensors, or several files that
// model.safetensors.index.json names, over read-only maps. Nothing in them is trusted.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "dunlin/status.h"
#include "formats/safetensors_parse.h"

namespace dunlin {

// What to do about a folder that lacks what makes it a model's, by what it holds instead.
std::string folder_advice(const std::string& folder);

class Safetensors {
 public:
  // kNotFound where the folder has neither file or lacks one that the index names;
  // kInvalidArgument where a file or the index is not right. Messages name the file.
  static Result<std::shared_ptr<const Safetensors>> open_folder(const std::string& folder);

  // All below are const and thread-safe; views live as long as this object.

  // Of all files, sorted by name.
  std::span<const SafetensorsTensor> tensors() const { return tensors_; }
  const SafetensorsTensor* find(std::string_view name) const;  // nullptr: missing
  std::uint64_t size_bytes() const;                            // of all files
  int num_files() const { return static_cast<int>(files_.size()); }

  // kDataLoss where a file was shortened or grew since it was opened.
  Outcome check_unchanged() const;
  // The bytes won't be read soon (MappedFile::drop_pages). A view of other memory: nothing.
  void drop_pages(const TensorView& tensor) const;

 private:
  Safetensors() = default;
  Outcome add(const std::string& path);
  Outcome sort();

  std::vector<MappedFile> files_;
  std::vector<SafetensorsTensor> tensors_;
};

}  // namespace dunlin
