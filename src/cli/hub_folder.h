// A model of the Hugging Face hub as a folder: the files of a repository that are needed to use it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cli/download.h"
#include "dunlin/status.h"

namespace dunlin::cli {

// How to fetch `file` of the repository to `destination`.
using HubFileRequest = std::function<DownloadRequest(const std::string& file,
                                                     const std::filesystem::path& destination)>;

// Whether all of a folder has been fetched.
bool hub_folder_is_complete(const std::filesystem::path& folder);

// Fetches config.json, the tokenizer's files and the safetensors (one file, or those that the index
// names) into `folder`, which exists. Files that are there already are kept; one that the
// repository lacks is kNotFound only where a model can't do without it. Weights come last, and
// only of a model that can be loaded as far as config.json tells.
Outcome fetch_hub_folder(const std::string& repo, const std::filesystem::path& folder,
                         const HubFileRequest& request, bool quiet);

}  // namespace dunlin::cli
