#include "support/hf_folder.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "formats/gguf_checkpoint.h"
#include "model/registry.h"
#include "quant/dequantize.h"
#include "quant/quantize.h"
#include "tensor/row_order.h"
#include "text/pretokenizer_table.h"
#include "text/vocab.h"

namespace dunlin {
namespace {

using nlohmann::json;

// "blk.3.attn_q.weight": "model.layers.3.self_attn.q_proj.weight".
std::string hf_name(std::string_view canonical) {
  static const std::map<std::string_view, std::string_view> kNames = {
      {"token_embd", "embed_tokens"},      {"output_norm", "norm"},
      {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
      {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
      {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
      {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
      {"ffn_down", "mlp.down_proj"},
  };
  const std::size_t end = canonical.rfind('.');
  std::string_view stem = canonical.substr(0, end);
  if (stem == "output") return "lm_head" + std::string(canonical.substr(end));
  std::string prefix = "model.";
  if (stem.starts_with("blk.")) {
    const std::size_t dot = stem.find('.', 4);
    prefix += fmt::format("layers.{}.", stem.substr(4, dot - 4));
    stem.remove_prefix(dot + 1);
  }
  const auto found = kNames.find(stem);
  return found == kNames.end()
             ? std::string()
             : fmt::format("{}{}{}", prefix, found->second, canonical.substr(end));
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

json config_json(const ModelConfig& config, const Vocab& vocab) {
  return {
      {"architectures", {config.architecture == "llama" ? "LlamaForCausalLM" : "Qwen2ForCausalLM"}},
      {"hidden_size", config.hidden_size},
      {"num_hidden_layers", config.num_layers()},
      {"num_attention_heads", config.num_heads},
      {"num_key_value_heads", config.num_kv_heads},
      {"head_dim", config.head_dim},
      {"intermediate_size", config.ffn_size},
      {"max_position_embeddings", config.context_length},
      {"vocab_size", config.vocab_size},
      {"rms_norm_eps", config.norm_eps},
      {"rope_theta", config.ropes[0].theta},
      {"tie_word_embeddings", config.tied_head},
      {"eos_token_id", vocab.eos_ids},
  };
}

json tokenizer_json(const Vocab& vocab) {
  json tokens = json::object(), added = json::array(), steps = json::array();
  for (int id = 0; id < vocab.size(); ++id) {
    const auto at = static_cast<std::size_t>(id);
    const TokenType type = vocab.types[at];
    if (type == TokenType::kNormal) tokens[std::string(vocab.tokens[at])] = id;
    if (type != TokenType::kControl && type != TokenType::kUserDefined) continue;
    added.push_back({{"id", id},
                     {"content", vocab.tokens[at]},
                     {"special", type == TokenType::kControl},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false}});
  }
  const PreTokenizerSpec& spec = *find_pretokenizer_spec(vocab.pretokenizer);
  for (const std::string_view expression : spec.expressions)
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", expression}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  json bytes = {{"type", "ByteLevel"},
                {"add_prefix_space", false},
                {"trim_offsets", true},
                {"use_regex", false}};
  steps.push_back(bytes);
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", steps}}},
          {"post_processor", nullptr},
          {"decoder", bytes},
          {"model",
           {{"type", "BPE"},
            {"ignore_merges", spec.whole_pieces_first},
            {"vocab", tokens},
            {"merges", vocab.merges}}}};
}

json tokenizer_config_json(const GgufFile& file, const Vocab& vocab) {
  json config = {{"add_bos_token", vocab.adds_bos.value_or(false)}};
  const auto token = [&](const char* key, TokenId id) {
    if (id >= 0) config[key] = vocab.tokens[static_cast<std::size_t>(id)];
  };
  token("bos_token", vocab.bos_id);
  token("eos_token", vocab.eos_id);
  const auto source = file.get_string("tokenizer.chat_template", "");
  if (source && !source->empty()) config["chat_template"] = *source;
  return config;
}

// Rows in canonical order, as `dtype`.
void write_tensor(const TensorView& view, RowOrder order, DType dtype, std::ofstream& out) {
  const std::int64_t cols = view.cols(), stored_bytes = row_bytes(view.dtype, cols);
  std::vector<float> floats(static_cast<std::size_t>(cols));
  std::vector<std::byte> bytes(static_cast<std::size_t>(row_bytes(dtype, cols)));
  for (std::int64_t row = 0; row < view.rows(); ++row) {
    dequantize(view.dtype, view.data + order.stored_row(row) * stored_bytes, floats.data(), cols);
    quantize(dtype, floats.data(), bytes.data(), cols);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }
}

Outcome write_safetensors(const GgufCheckpoint& checkpoint, const ModelConfig& config,
                          const std::string& path, DType dtype) {
  json header = json::object();
  std::int64_t at = 0;
  const std::vector<CheckpointTensor> tensors = checkpoint.tensors();
  for (const CheckpointTensor& tensor : tensors) {
    const std::string name = hf_name(tensor.name);
    if (name.empty()) return invalid("no name for tensor " + tensor.name);
    const TensorView& view = tensor.view;
    const std::int64_t end = at + row_bytes(dtype, view.num_elements());
    header[name] = {{"dtype", dtype_info(dtype).name},
                    {"shape", std::vector(view.shape.begin(), view.shape.begin() + view.rank)},
                    {"data_offsets", {at, end}}};
    at = end;
  }
  std::ofstream out(path, std::ios::binary);
  const std::string text = header.dump();
  const std::uint64_t size = text.size();
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out << text;
  for (const CheckpointTensor& tensor : tensors) {
    RowOrder order;
    const bool is_qk = tensor.name.find(".attn_q.") != std::string::npos ||
                       tensor.name.find(".attn_k.") != std::string::npos;
    if (config.gguf_interleaves_qk && is_qk) order.interleaved_head_dim = config.head_dim;
    write_tensor(tensor.view, order, dtype, out);
    checkpoint.release(tensor.view);
  }
  if (!out.flush()) return fail(StatusCode::kResourceExhausted, path + ": can't write it");
  return {};
}

}  // namespace

Outcome write_hf_folder(const std::string& gguf_path, const std::string& folder, DType dtype) {
  DUNLIN_ASSIGN(file, GgufFile::open(gguf_path));
  DUNLIN_ASSIGN(checkpoint, GgufCheckpoint::create(file));
  DUNLIN_ASSIGN(config, read_config(*checkpoint));
  DUNLIN_ASSIGN(vocab, read_vocab(*file));
  std::filesystem::create_directories(folder);
  write_text(folder + "/config.json", config_json(config, vocab).dump(2));
  write_text(folder + "/tokenizer.json", tokenizer_json(vocab).dump());
  write_text(folder + "/tokenizer_config.json", tokenizer_config_json(*file, vocab).dump(2));
  return write_safetensors(*checkpoint, config, folder + "/model.safetensors", dtype);
}

}  // namespace dunlin
