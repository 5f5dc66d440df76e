// What a folder of sentence-transformers says of embeddings: its modules and their pooling.
#pragma once

#include <optional>
#include <string>

#include "dunlin/pooling.h"
#include "dunlin/status.h"

namespace dunlin {

// nullopt: the folder says nothing. kUnimplemented for what would make other embeddings than pooled
// and normalised hidden states (a dense layer, a maximum). Messages name the file.
Result<std::optional<Pooling>> read_folder_pooling(const std::string& folder);

}  // namespace dunlin
