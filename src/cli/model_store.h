// From what the user calls a model to a file on disk, fetching it first where needed.
//
// A model is a path to a GGUF file or to a Hugging Face folder, a name of the registry
// (smollm2-135m), or hf:ORG/REPO/FILE.gguf, or hf:ORG/REPO for the folder (without hf: where no
// such path is here). Fetched files live in the cache folder: $DUNLIN_CACHE, else
// $XDG_CACHE_HOME/dunlin, else ~/.cache/dunlin, under models/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dunlin/status.h"

namespace dunlin::cli {

struct ResolvedModel {
  std::string path;  // of the GGUF file or the folder
  std::string name;  // what the API calls it: the registry's name, or the file's stem
};

struct FetchOptions {
  bool offline = false;  // never use the network; also DUNLIN_OFFLINE=1
  bool quiet = false;    // no progress bar
};

// A path must exist; a name or hf: reference is fetched unless the cache has it (checked by size
// and, when fetched, by SHA-256). kNotFound names near misses.
Result<ResolvedModel> resolve_model(const std::string& reference, const FetchOptions& options);

struct StoredModel {
  std::string name;
  std::string path;          // "" where it isn't fetched yet
  std::uint64_t size_bytes;  // on disk, or what the fetch will take
  std::int64_t modified_unix_s;
  std::string description;
};
std::vector<StoredModel> list_models();  // the registry and what else is in the cache
Result<std::uint64_t> remove_model(const std::string& name);  // bytes freed; only inside the cache

}  // namespace dunlin::cli
