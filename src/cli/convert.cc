#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/progress.h"
#include "model/convert.h"
#include "quant/quantize.h"

namespace dunlin::cli {
namespace {

struct Flags {
  std::string folder, out, type = "auto";
  bool quiet = false;
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::vector<std::string> type_names() {
  std::vector<std::string> names = {"auto"};
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (can_quantize(dtype)) names.push_back(lower(dtype_info(dtype).name));
  }
  return names;
}

std::optional<DType> type_of(const std::string& name) {
  for (int i = 0; i < kNumDTypes; ++i)
    if (lower(dtype_info(static_cast<DType>(i)).name) == name) return static_cast<DType>(i);
  return std::nullopt;
}

Outcome convert(const Flags& flags) {
  DUNLIN_ASSIGN(checkpoint, HfCheckpoint::open(flags.folder));
  ConvertOptions options;
  options.type = type_of(flags.type);
  ProgressBar bar("converting", flags.quiet);
  options.progress = [&](std::int64_t done, std::int64_t total) {
    bar.update_bytes(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
  };
  return convert_to_gguf(*checkpoint, flags.out, options);
}

}  // namespace

void add_convert(CLI::App& app, Invocation& invocation) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command =
      *app.add_subcommand("convert", "Write a Hugging Face folder as one GGUF file");
  command.add_option("FOLDER", flags->folder, "Holds config.json and safetensors")
      ->required();
  command.add_option("OUT", flags->out, "The file to write; must not be there")->required();
  command
      .add_option("--type", flags->type,
                  "Of the weight matrices: auto (as stored), f32, f16, bf16, q8_0, ...")
      ->capture_default_str()
      ->transform(CLI::IsMember(type_names(), CLI::ignore_case));
  command.add_flag("--quiet", flags->quiet, "No progress bar");
  command.footer("Example:\n  dunlin convert ./SmolLM2-135M-Instruct smollm2.gguf --type q8_0");
  command.callback([flags, &invocation] {
    invocation.run = [flags] {
      const Outcome done = convert(*flags);
      if (!done) return report(done.error());
      note("the file has weights and no vocabulary: tokenizers are not converted yet");
      return 0;
    };
  });
}

}  // namespace dunlin::cli
