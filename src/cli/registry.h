// The models that Dunlin knows by name, each with its sources in order of trial and one SHA-256.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dunlin::cli {

// Wheels that carry the file in parts: each holds one member whose name contains `member`.
struct WheelSource {
  std::span<const std::string_view> packages;  // "name==version", in the order of the parts
  std::string_view member;
};

struct RegistryEntry {
  std::string_view name;         // what users type
  std::string_view file;         // the file's name in the cache
  std::string_view description;  // one line for `dunlin list`
  std::uint64_t size_bytes;
  std::string_view sha256;
  std::string_view hub_repo;  // Hugging Face ORG/REPO
  std::string_view hub_file;
  WheelSource wheels;
};

std::span<const RegistryEntry> registry();
const RegistryEntry* find_registry_entry(std::string_view name);  // null: unknown

}  // namespace dunlin::cli
