#include "cli/model_flags.h"

#include <CLI/CLI.hpp>

#include "model/quant_recipe.h"

namespace dunlin::cli {

CLI::Option& add_model_options(CLI::App& command, const std::string& name, std::string& model,
                               FetchOptions& fetch) {
  CLI::Option* option = command.add_option(
      name, model,
      "A GGUF file or a folder, a name from `dunlin list`, ORG/REPO, or hf:ORG/REPO/FILE.gguf");
  option->required();
  command.add_flag("--offline", fetch.offline, "Never fetch a model")->envname("DUNLIN_OFFLINE");
  return *option;
}

void add_quantize_option(CLI::App& command, std::string& recipe) {
  command
      .add_option("--quantize", recipe,
                  "Turns F32, F16 and BF16 weights into this type on load: q8_0, q6_k, q4_k_m, ...")
      ->transform(CLI::IsMember(QuantRecipe::names(), CLI::ignore_case))
      ->envname("DUNLIN_QUANTIZE");
}

void add_isa_option(CLI::App& command, std::string& isa) {
  command
      .add_option("--isa", isa,
                  "Kernels: auto, amx, avx512, avx2, neon, portable, reference-q8, or reference "
                  "(slow, exact)")
      ->capture_default_str()
      ->envname("DUNLIN_ISA");
}

void add_cache_type_options(CLI::App& command, KvFormats& formats) {
  const auto add = [&command](const char* flag, const char* variable, const char* help,
                              KvFormat& format) {
    command
        .add_option_function<std::string>(
            flag, [&format](const std::string& name) { format = *find_kv_format(name); }, help)
        ->check(CLI::IsMember(kv_format_names()))
        ->default_str(std::string(kv_format_info(format).name))
        ->envname(variable);
  };
  add("--cache-type-k", "DUNLIN_CACHE_TYPE_K", "How keys are cached", formats.k);
  add("--cache-type-v", "DUNLIN_CACHE_TYPE_V", "How values are cached", formats.v);
}

void add_compute_options(CLI::App& command, const std::string& names, int& num_threads,
                         std::string& isa) {
  command
      .add_option(names, num_threads, "Compute threads (default: every core this process may use)")
      ->check(CLI::Range(0, 1024))
      ->envname("DUNLIN_THREADS");
  add_isa_option(command, isa);
}

}  // namespace dunlin::cli
