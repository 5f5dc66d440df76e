// The options by which commands name a model and the machine's share for it, said once.
#pragma once

#include <string>

#include "cli/model_store.h"
#include "tensor/kv_format.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace dunlin::cli {

// Adds `name` ("MODEL" or "--model", required) and --offline. Gives the model's option back.
CLI::Option& add_model_options(CLI::App& command, const std::string& name, std::string& model,
                               FetchOptions& fetch);

// Adds --quantize: the name of a QuantRecipe, or "" for weights as stored.
void add_quantize_option(CLI::App& command, std::string& recipe);

// Adds --isa.
void add_isa_option(CLI::App& command, std::string& isa);

// Adds --cache-type-k and --cache-type-v, each with its DUNLIN_* variable.
void add_cache_type_options(CLI::App& command, KvFormats& formats);

// Adds --threads (`names` may hold a short one too) and --isa.
void add_compute_options(CLI::App& command, const std::string& names, int& num_threads,
                         std::string& isa);

}  // namespace dunlin::cli
