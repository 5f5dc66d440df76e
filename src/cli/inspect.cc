#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/model_flags.h"
#include "cli/model_store.h"
#include "cli/progress.h"
#include "frontend/file_facts.h"

namespace dunlin::cli {
namespace {

void print_memory_table(const FileFacts& facts) {
  fmt::print(
      "\nmemory in all, by context and sequences at once (f16 keys and values; dunlin plan says "
      "more)\n");
  fmt::print("{:>10}", "context");
  for (const int batch : kMemoryBatches) fmt::print("{:>12}", fmt::format("x {}", batch));
  fmt::print("\n");
  for (const MemoryRow& row : facts.memory) {
    fmt::print("{:>10}", grouped(row.context));
    for (const std::int64_t bytes : row.bytes) fmt::print("{:>12}", format_memory(bytes));
    fmt::print("\n");
  }
}

void print_text(const FileFacts& facts) {
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print("{:<22}{}\n", name, value);
  };
  line("file", fmt::format("{} ({}{})", facts.path, format_bytes(facts.file_bytes),
                           facts.num_parts > 1 ? fmt::format(", {} parts", facts.num_parts) : ""));
  if (facts.format == FileFormat::kGguf)
    line("format", fmt::format("GGUF version {}, {} metadata keys, {} tensors", facts.version,
                               facts.num_keys, facts.num_tensors));
  else
    line("format", fmt::format("Hugging Face folder, {} tensors", facts.num_tensors));
  if (!facts.name.empty()) line("name", facts.name);
  line("architecture", facts.architecture);
  line("tokenizer", facts.tokenizer);
  line("chat template", facts.chat_template ? "yes"
                        : facts.is_encoder  ? "no (an embedding model: it gives vectors)"
                                            : "no (a base model: it completes text)");
  if (facts.vocabulary_only) {
    line("weights", "none: a vocabulary only");
    return;
  }
  line("parameters", grouped(facts.num_params));
  std::string mix;
  for (const auto& [dtype, bytes] : facts.bytes_by_dtype)
    mix +=
        fmt::format("{}{} {:.0f}%", mix.empty() ? "" : ", ", dtype,
                    100.0 * static_cast<double>(bytes) / static_cast<double>(facts.weight_bytes));
  line("weights", fmt::format("{} ({} of the bytes)",
                              format_bytes(static_cast<std::uint64_t>(facts.weight_bytes)), mix));
  line("layers",
       fmt::format("{}, {} wide; {} heads over {} KV heads of {}", facts.num_layers,
                   facts.hidden_size, facts.num_heads, facts.num_kv_heads, facts.head_dim));
  if (facts.num_window_layers > 0)
    line("sliding window", fmt::format("{} tokens, in {} of {} layers", facts.window,
                                       facts.num_window_layers, facts.num_layers));
  line("vocabulary", grouped(facts.vocab_size));
  line("embeddings", fmt::format("{} numbers, pooling {}", facts.hidden_size, facts.pooling));
  line("context", fmt::format("{} tokens", grouped(facts.context_length)));
  line("KV cache", fmt::format("{} bytes a token (f16)", grouped(facts.kv_bytes_per_token)));
  print_memory_table(facts);
}

void print_json(const FileFacts& facts) {
  using Json = nlohmann::ordered_json;
  const bool is_gguf = facts.format == FileFormat::kGguf;
  Json out = {{"file", facts.path},
              {"format", is_gguf ? "gguf" : "safetensors"},
              {"file_bytes", facts.file_bytes},
              {"parts", facts.num_parts},
              {"gguf_version", facts.version},
              {"metadata_keys", facts.num_keys},
              {"tensors", facts.num_tensors},
              {"name", facts.name},
              {"architecture", facts.architecture},
              {"tokenizer", facts.tokenizer},
              {"chat_template", facts.chat_template},
              {"vocabulary_only", facts.vocabulary_only}};
  if (!facts.vocabulary_only) {
    Json mix = Json::object(), memory = Json::array();
    for (const auto& [dtype, bytes] : facts.bytes_by_dtype) mix[dtype] = bytes;
    for (const MemoryRow& row : facts.memory)
      for (std::size_t i = 0; i < row.bytes.size(); ++i)
        memory.push_back(
            {{"context", row.context}, {"sequences", kMemoryBatches[i]}, {"bytes", row.bytes[i]}});
    out.update(Json{{"parameters", facts.num_params},
                    {"weight_bytes", facts.weight_bytes},
                    {"bytes_by_dtype", mix},
                    {"layers", facts.num_layers},
                    {"hidden_size", facts.hidden_size},
                    {"heads", facts.num_heads},
                    {"kv_heads", facts.num_kv_heads},
                    {"head_dim", facts.head_dim},
                    {"sliding_window", facts.window},
                    {"window_layers", facts.num_window_layers},
                    {"vocab_size", facts.vocab_size},
                    {"context_length", facts.context_length},
                    {"encoder", facts.is_encoder},
                    {"pooling", facts.pooling},
                    {"kv_bytes_per_token", facts.kv_bytes_per_token},
                    {"memory", memory}});
  }
  fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

int inspect(const std::string& reference, const std::string& output, const std::string& quantize,
            const FetchOptions& fetch) {
  const auto model = resolve_model(reference, fetch);
  if (!model) return report(model.error());
  auto facts = [&] {
    ProgressBar bar("reading weights", !ProgressBar::on_terminal());
    return check_file(
        model->path, QuantRecipe::find(quantize), [&](std::int64_t done, std::int64_t total) {
          bar.update_bytes(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
        });
  }();
  if (!facts) return report(facts.error());
  output == "json" ? print_json(*facts) : print_text(*facts);
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, Invocation& invocation) {
  struct Flags {
    std::string model, output = "text", quantize;
    FetchOptions fetch;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App& command =
      *app.add_subcommand("inspect", "Check a model file or folder wholly and show what is in it");
  add_model_options(command, "MODEL", flags->model, flags->fetch);
  add_quantize_option(command, flags->quantize);
  command.add_option("--output", flags->output, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  command.footer(
      "Exit code 0: the file is sound and Dunlin can run it. 1: one line says what is wrong and "
      "where.\n\n"
      "Example:\n  dunlin inspect model.gguf --output json");
  command.callback([flags, &invocation] {
    invocation.run = [flags] {
      return inspect(flags->model, flags->output, flags->quantize, flags->fetch);
    };
  });
}

}  // namespace dunlin::cli
