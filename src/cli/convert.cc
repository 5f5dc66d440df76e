#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/model_store.h"
#include "cli/progress.h"
#include "cli/registry.h"
#include "frontend/model_text.h"
#include "model/convert.h"
#include "model/registry.h"
#include "terminal/signal_pipe.h"

namespace dunlin::cli {
namespace {

struct Flags {
  std::string model, out, type = "auto";
  int threads = 0;
  bool no_vocabulary = false;
  FetchOptions fetch;
};

std::vector<std::string> type_names() {
  std::vector<std::string> names = QuantRecipe::names();
  names.insert(names.begin(), "auto");
  return names;
}

// What other readers of GGUF don't know (text/vocab.cc).
void set_own_keys(const GgufVocabulary& vocabulary, GgufWriter& writer) {
  for (const PrependSchemeName& row : kPrependSchemes)
    if (vocabulary.prepend_scheme == row.scheme)
      writer.set_string("tokenizer.ggml.prepend_scheme", row.name);
  if (vocabulary.prefix_ids)
    writer.set_i32s("tokenizer.ggml.prefix_token_ids", *vocabulary.prefix_ids);
  if (vocabulary.suffix_ids)
    writer.set_i32s("tokenizer.ggml.suffix_token_ids", *vocabulary.suffix_ids);
}

void set_vocabulary(const GgufVocabulary& vocabulary, GgufWriter& writer) {
  writer.set_string("tokenizer.ggml.model", vocabulary.model);
  writer.set_string("tokenizer.ggml.pre", vocabulary.pretokenizer);
  writer.set_strings("tokenizer.ggml.tokens", vocabulary.tokens);
  writer.set_i32s("tokenizer.ggml.token_type", vocabulary.types);
  if (vocabulary.model == "gpt2") writer.set_strings("tokenizer.ggml.merges", vocabulary.merges);
  if (!vocabulary.scores.empty()) {
    writer.set_f32s("tokenizer.ggml.scores", vocabulary.scores);
    writer.set_bool("tokenizer.ggml.add_space_prefix", vocabulary.adds_space_prefix);
  }
  set_own_keys(vocabulary, writer);
  if (vocabulary.model == "t5") {
    writer.set_bool("tokenizer.ggml.remove_extra_whitespaces", vocabulary.removes_extra_spaces);
    if (!vocabulary.charsmap.empty())
      writer.set_u8s("tokenizer.ggml.precompiled_charsmap", vocabulary.charsmap);
  }
  const auto set_id = [&](const char* key, TokenId id) {
    if (id >= 0) writer.set_u32(key, static_cast<std::uint32_t>(id));
  };
  set_id("tokenizer.ggml.bos_token_id", vocabulary.bos_id);
  set_id("tokenizer.ggml.eos_token_id", vocabulary.eos_id);
  set_id("tokenizer.ggml.eot_token_id", vocabulary.eot_id);
  set_id("tokenizer.ggml.eom_token_id", vocabulary.eom_id);
  set_id("tokenizer.ggml.unknown_token_id", vocabulary.unknown_id);
  set_id("tokenizer.ggml.cls_token_id", vocabulary.cls_id);
  set_id("tokenizer.ggml.seperator_token_id", vocabulary.separator_id);  // so spelled
  set_id("tokenizer.ggml.padding_token_id", vocabulary.padding_id);
  set_id("tokenizer.ggml.mask_token_id", vocabulary.mask_id);
  if (vocabulary.num_token_types > 0)
    writer.set_u32("tokenizer.ggml.token_type_count",
                   static_cast<std::uint32_t>(vocabulary.num_token_types));
  writer.set_bool("tokenizer.ggml.add_bos_token", vocabulary.adds_bos);
  writer.set_bool("tokenizer.ggml.add_eos_token", vocabulary.adds_eos);
  if (!vocabulary.chat_template.empty())
    writer.set_string("tokenizer.chat_template", vocabulary.chat_template);
}

tl::unexpected<Status> is_a_file(const std::string& model) {
  return invalid(model + ": is a file; convert takes a folder with config.json and safetensors");
}

Outcome convert(const Flags& flags) {
  if (find_registry_entry(flags.model) != nullptr) return is_a_file(flags.model);  // unfetched
  DUNLIN_ASSIGN(model, resolve_model(flags.model, flags.fetch));
  std::error_code ignored;
  if (!std::filesystem::is_directory(model.path, ignored)) return is_a_file(model.path);
  DUNLIN_ASSIGN(checkpoint, HfCheckpoint::open(model.path));
  DUNLIN_ASSIGN(config, read_config(*checkpoint));
  ConvertOptions options;
  GgufVocabulary vocabulary;
  if (!flags.no_vocabulary) {
    auto read = read_gguf_vocabulary(model.path, config.vocab_size);
    if (!read) {
      return fail(read.error().code(),
                  read.error().message() + "; --no-vocabulary converts the weights alone");
    }
    vocabulary = std::move(*read);
    vocabulary.num_token_types = config.num_token_types;
    options.add_vocabulary = [&](GgufWriter& writer) { set_vocabulary(vocabulary, writer); };
  }
  options.recipe = QuantRecipe::find(flags.type);
  options.num_threads = flags.threads;
  terminal::SignalPipe signals({SIGINT, SIGTERM, SIGHUP});
  std::optional<ProgressBar> bar;  // from the first byte on: what is refused needs none
  options.progress = [&](std::int64_t done, std::int64_t total) {
    if (!bar) bar.emplace("converting", flags.fetch.quiet);
    bar->update_bytes(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
    return !signals.take().has_value();
  };
  return convert_to_gguf(*checkpoint, flags.out, options);
}

}  // namespace

void add_convert(CLI::App& app, Invocation& invocation) {
  auto flags = std::make_shared<Flags>();
  CLI::App& command =
      *app.add_subcommand("convert", "Write a Hugging Face folder as one GGUF file");
  command
      .add_option("FOLDER", flags->model,
                  "Holds config.json, safetensors and tokenizer.json; or ORG/REPO of one")
      ->required();
  command.add_option("OUT", flags->out, "The file to write; must not be there")->required();
  command
      .add_option("--type", flags->type,
                  "Of the weight matrices: auto (as stored), f16, bf16, q8_0, q4_k_m, ...")
      ->capture_default_str()
      ->transform(CLI::IsMember(type_names(), CLI::ignore_case));
  command.add_option("--threads", flags->threads, "Threads (default: every core it may use)")
      ->check(CLI::Range(0, 1024))
      ->envname("DUNLIN_THREADS");
  command.add_flag("--no-vocabulary", flags->no_vocabulary, "Weights alone");
  command.add_flag("--offline", flags->fetch.offline, "Never fetch a model")
      ->envname("DUNLIN_OFFLINE");
  command.add_flag("--quiet", flags->fetch.quiet, "No progress bar");
  command.footer("Example:\n  dunlin convert ./SmolLM2-135M-Instruct smollm2.gguf --type q4_k_m");
  command.callback([flags, &invocation] {
    invocation.run = [flags] {
      constexpr int kInterruptedCode = 128 + SIGINT;
      const Outcome done = convert(*flags);
      if (done) return 0;
      const int code = report(done.error());
      return done.error().code() == StatusCode::kCancelled ? kInterruptedCode : code;
    };
  });
}

}  // namespace dunlin::cli
