#include "formats/safetensors.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/quote.h"

namespace dunlin {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

// A link counts wherever it leads, so that one that leads nowhere is not silently passed over.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

// A file's name and nothing else: an index must not reach outside of its folder.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

using WeightMap = std::vector<std::pair<std::string, std::string>>;  // tensor, file

Result<WeightMap> parse_index(const MappedFile& file) {
  DUNLIN_ASSIGN(index, parse_json(file.text()));
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object() || map->empty()) {
    return invalid("has no object \"weight_map\" that says which file a tensor is in");
  }
  WeightMap places;
  for (const auto& [name, value] : map->items()) {
    if (!value.is_string() || !is_plain_name(value.get_ref<const std::string&>())) {
      return invalid(fmt::format("tensor {} is not in a file of this folder: {}",
                                 quote_for_message(name), quote_for_message(value.dump())));
    }
    places.emplace_back(name, value.get<std::string>());
  }
  return places;
}

}  // namespace

std::string folder_advice(const std::string& folder) {
  std::error_code ignored;
  for (fs::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(".gguf"))
      return fmt::format("give the GGUF file in it: {}", quote_for_message(it->path().string()));
    if (name.ends_with(".bin") || name.ends_with(".pth") || name.ends_with(".pt"))
      return fmt::format("{} is no safetensors file: get the model's safetensors, or convert it",
                         quote_for_message(name));
    if (name.ends_with(".safetensors") && name != kSingle)
      return fmt::format("{} must be called {}, or be named by an index", quote_for_message(name),
                         kSingle);
  }
  return "a model's folder holds config.json and its weights as safetensors";
}

Outcome Safetensors::add(const std::string& path) {
  DUNLIN_ASSIGN(file, MappedFile::open(path));
  DUNLIN_ASSIGN(tensors, parse_safetensors(file.bytes(), path));
  for (SafetensorsTensor& tensor : tensors) tensors_.push_back(std::move(tensor));
  files_.push_back(std::move(file));
  return {};
}

Outcome Safetensors::sort() {
  const auto by_name = [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
    return a.name < b.name;
  };
  std::sort(tensors_.begin(), tensors_.end(), by_name);
  const auto same = [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
    return a.name == b.name;
  };
  const auto twice = std::adjacent_find(tensors_.begin(), tensors_.end(), same);
  if (twice == tensors_.end()) return {};
  return invalid(fmt::format("tensor {} is in two files", quote_for_message(twice->name)));
}

Result<std::shared_ptr<const Safetensors>> Safetensors::open_folder(const std::string& folder) {
  const fs::path base(folder);
  std::shared_ptr<Safetensors> opened(new Safetensors());
  if (is_there(base / kSingle)) {
    DUNLIN_TRY(opened->add((base / kSingle).string()));
    DUNLIN_TRY(opened->sort());
    return opened;
  }
  const std::string index_path = (base / kIndex).string();
  if (!is_there(index_path)) {
    return fail(StatusCode::kNotFound, fmt::format("{}: has neither {} nor {}; {}", folder, kSingle,
                                                   kIndex, folder_advice(folder)));
  }
  DUNLIN_ASSIGN(index_file, MappedFile::open(index_path));
  auto places = parse_index(index_file);
  if (!places) return tl::unexpected(places.error().with_prefix(index_path));
  std::set<std::string> files;
  for (const auto& [name, file] : *places) files.insert(file);
  for (const std::string& file : files) {
    if (!is_there(base / file)) {
      return fail(StatusCode::kNotFound, fmt::format("{}: names {}, which is not in the folder",
                                                     index_path, quote_for_message(file)));
    }
    DUNLIN_TRY(opened->add((base / file).string()));
  }
  if (Outcome sorted = opened->sort(); !sorted)
    return tl::unexpected(sorted.error().with_prefix(index_path));
  for (const auto& [name, file] : *places) {
    if (opened->find(name) == nullptr) {
      return invalid(fmt::format("{}: tensor {} is not in {}", index_path, quote_for_message(name),
                                 quote_for_message(file)));
    }
  }
  return opened;
}

const SafetensorsTensor* Safetensors::find(std::string_view name) const {
  const auto it = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const SafetensorsTensor& tensor, std::string_view text) { return tensor.name < text; });
  return it != tensors_.end() && it->name == name ? &*it : nullptr;
}

std::uint64_t Safetensors::size_bytes() const {
  std::uint64_t size = 0;
  for (const MappedFile& file : files_) size += file.bytes().size();
  return size;
}

Outcome Safetensors::check_unchanged() const {
  for (const MappedFile& file : files_) DUNLIN_TRY(file.check_unchanged());
  return {};
}

void Safetensors::drop_pages(const TensorView& tensor) const {
  for (const MappedFile& file : files_) {
    const std::span<const std::byte> bytes = file.bytes();
    if (tensor.data < bytes.data() || tensor.data >= bytes.data() + bytes.size()) continue;
    file.drop_pages(static_cast<std::size_t>(tensor.data - bytes.data()),
                    static_cast<std::size_t>(tensor.size_bytes()));
  }
}

}  // namespace dunlin
