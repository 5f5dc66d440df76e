#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/progress.h"
#include "frontend/model_text.h"
#include "model/convert.h"
#include "model/registry.h"
#include "quant/quantize.h"

namespace dunlin::cli {
namespace {

struct Flags {
  std::string folder, out, type = "auto";
  bool quiet = false, no_vocabulary = false;
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

void set_vocabulary(const GgufVocabulary& vocabulary, GgufWriter& writer) {
  writer.set_string("tokenizer.ggml.model", vocabulary.model);
  writer.set_string("tokenizer.ggml.pre", vocabulary.pretokenizer);
  writer.set_strings("tokenizer.ggml.tokens", vocabulary.tokens);
  writer.set_i32s("tokenizer.ggml.token_type", vocabulary.types);
  writer.set_strings("tokenizer.ggml.merges", vocabulary.merges);
  const auto set_id = [&](const char* key, TokenId id) {
    if (id >= 0) writer.set_u32(key, static_cast<std::uint32_t>(id));
  };
  set_id("tokenizer.ggml.bos_token_id", vocabulary.bos_id);
  set_id("tokenizer.ggml.eos_token_id", vocabulary.eos_id);
  if (vocabulary.adds_bos) writer.set_bool("tokenizer.ggml.add_bos_token", *vocabulary.adds_bos);
  if (vocabulary.adds_eos) writer.set_bool("tokenizer.ggml.add_eos_token", *vocabulary.adds_eos);
  if (!vocabulary.chat_template.empty())
    writer.set_string("tokenizer.chat_template", vocabulary.chat_template);
}

Outcome convert(const Flags& flags) {
  DUNLIN_ASSIGN(checkpoint, HfCheckpoint::open(flags.folder));
  DUNLIN_ASSIGN(config, read_config(*checkpoint));
  ConvertOptions options;
  GgufVocabulary vocabulary;
  if (!flags.no_vocabulary) {
    auto read = read_gguf_vocabulary(flags.folder, config.vocab_size);
    if (!read) {
      return fail(read.error().code(),
                  read.error().message() + "; --no-vocabulary converts the weights alone");
    }
    vocabulary = std::move(*read);
    options.add_vocabulary = [&](GgufWriter& writer) { set_vocabulary(vocabulary, writer); };
  }
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
  command.add_option("FOLDER", flags->folder, "Holds config.json, safetensors and tokenizer.json")
      ->required();
  command.add_option("OUT", flags->out, "The file to write; must not be there")->required();
  command
      .add_option("--type", flags->type,
                  "Of the weight matrices: auto (as stored), f32, f16, bf16, q8_0, ...")
      ->capture_default_str()
      ->transform(CLI::IsMember(type_names(), CLI::ignore_case));
  command.add_flag("--no-vocabulary", flags->no_vocabulary, "Weights alone");
  command.add_flag("--quiet", flags->quiet, "No progress bar");
  command.footer("Example:\n  dunlin convert ./SmolLM2-135M-Instruct smollm2.gguf --type q8_0");
  command.callback([flags, &invocation] {
    invocation.run = [flags] {
      const Outcome done = convert(*flags);
      return done ? 0 : report(done.error());
    };
  });
}

}  // namespace dunlin::cli
