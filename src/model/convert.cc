#include "model/convert.h"

#include <cstring>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/registry.h"
#include "model/weights.h"
#include "quant/dequantize.h"
#include "quant/quantize.h"
#include "tensor/row_order.h"

namespace dunlin {
namespace {

// llama.cpp's number for "mostly of this type".
std::uint32_t file_type(DType dtype) {
  switch (dtype) {
    case DType::kF32: return 0;
    case DType::kQ4_0: return 2;
    case DType::kQ4_1: return 3;
    case DType::kQ8_0: return 7;
    case DType::kQ5_0: return 8;
    case DType::kQ5_1: return 9;
    case DType::kBF16: return 32;
    default: return 1;  // F16
  }
}

// One tensor of the file: a tensor of the checkpoint, or its experts' one behind the other.
struct Output {
  std::vector<TensorView> parts;
  RowOrder order;
  DType dtype = DType::kF32;
};

// "blk.0.ffn_gate.3.weight" is part 3 of "blk.0.ffn_gate_exps.weight".
std::optional<std::pair<std::string, std::size_t>> expert_of(std::string_view name) {
  for (const std::string_view kind : {".ffn_gate.", ".ffn_up.", ".ffn_down."}) {
    const std::size_t at = name.find(kind);
    if (at == name.npos) continue;
    const std::string_view rest = name.substr(at + kind.size());
    std::size_t digits = 0, idx = 0;
    while (digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9')
      idx = idx * 10 + static_cast<std::size_t>(rest[digits++] - '0');
    if (digits == 0 || digits > 6) continue;
    const std::string_view stem = name.substr(0, at + kind.size() - 1);
    return std::pair(fmt::format("{}_exps{}", stem, rest.substr(digits)), idx);
  }
  return std::nullopt;
}

bool is_q_or_k(std::string_view name) {
  return name.find(".attn_q.") != name.npos || name.find(".attn_k.") != name.npos;
}

DType output_type(const std::string& name, const TensorView& view, std::optional<DType> wanted) {
  if (view.rank < 2 || name.find("ffn_gate_inp") != name.npos) return DType::kF32;
  const DType dtype = wanted.value_or(view.dtype);
  return view.cols() % dtype_info(dtype).block_size == 0 ? dtype : DType::kF16;
}

std::map<std::string, Output> outputs_of(const HfCheckpoint& checkpoint, const ModelConfig& config,
                                         std::optional<DType> wanted) {
  std::map<std::string, Output> outputs;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    const auto expert = expert_of(tensor.name);
    const std::string& name = expert ? expert->first : tensor.name;
    Output& output = outputs[name];
    const std::size_t idx = expert ? expert->second : 0;
    if (output.parts.size() <= idx) output.parts.resize(idx + 1);
    output.parts[idx] = tensor.view;
    output.dtype = output_type(name, tensor.view, wanted);
    if (config.gguf_interleaves_qk && is_q_or_k(name))
      output.order.interleaved_head_dim = config.head_dim;
  }
  return outputs;
}

// Row (of a vector: element) r of the checkpoint goes to stored_row(r) of the file.
void write_part(const TensorView& view, const Output& output, std::byte* out) {
  const bool is_vector = view.rank == 1;
  const std::int64_t rows = is_vector ? view.cols() : view.rows();
  const std::int64_t cols = is_vector ? 1 : view.cols();
  const std::int64_t in_bytes = row_bytes(view.dtype, cols);
  const std::int64_t out_bytes = row_bytes(output.dtype, cols);
  std::vector<float> floats(static_cast<std::size_t>(cols));
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::byte* src = view.data + row * in_bytes;
    std::byte* dst = out + output.order.stored_row(row) * out_bytes;
    if (view.dtype == output.dtype) {
      std::memcpy(dst, src, static_cast<std::size_t>(in_bytes));
      continue;
    }
    dequantize(view.dtype, src, floats.data(), cols);
    quantize(output.dtype, floats.data(), dst, cols);
  }
}

std::vector<std::int64_t> shape_of(const Output& output) {
  const TensorView& view = output.parts.front();
  std::vector<std::int64_t> shape(view.shape.begin(), view.shape.begin() + view.rank);
  if (output.parts.size() > 1)
    shape.insert(shape.begin(), static_cast<std::int64_t>(output.parts.size()));
  return shape;
}

void set_value(const std::string& key, const MetadataValue& value, GgufWriter& writer) {
  if (const auto* flag = std::get_if<bool>(&value)) return writer.set_bool(key, *flag);
  if (const auto* text = std::get_if<std::string>(&value)) return writer.set_string(key, *text);
  if (const auto* number = std::get_if<double>(&value))
    return writer.set_f32(key, static_cast<float>(*number));
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return *integer < 0 ? writer.set_i32(key, static_cast<std::int32_t>(*integer))
                        : writer.set_u32(key, static_cast<std::uint32_t>(*integer));
  }
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value))
    return writer.set_strings(key, *texts);
  if (const auto* numbers = std::get_if<std::vector<double>>(&value))
    return writer.set_f32s(key, std::vector<float>(numbers->begin(), numbers->end()));
  const auto& integers = std::get<std::vector<std::int64_t>>(value);
  writer.set_i32s(key, std::vector<std::int32_t>(integers.begin(), integers.end()));
}

void set_metadata(const HfCheckpoint& checkpoint, const ConvertOptions& options,
                  GgufWriter& writer) {
  for (const auto& [key, value] : checkpoint.all_metadata()) {
    if (key != "general.name" || value != MetadataValue(std::string()))
      set_value(key, value, writer);
  }
  const auto embedding = checkpoint.find("token_embd.weight");
  writer.set_u32("general.file_type", file_type(options.type.value_or(embedding->dtype)));
  writer.set_u32("general.quantization_version", 2);
  if (options.add_vocabulary)
    options.add_vocabulary(writer);
  else
    writer.set_string("tokenizer.ggml.model", "none");
}

}  // namespace

Outcome convert_to_gguf(const HfCheckpoint& checkpoint, const std::string& path,
                        const ConvertOptions& options) {
  DUNLIN_ASSIGN(config, read_config(checkpoint));
  DUNLIN_TRY(check_checkpoint(config, checkpoint));
  const std::map<std::string, Output> outputs = outputs_of(checkpoint, config, options.type);
  std::int64_t total_bytes = 0, done_bytes = 0;
  for (const auto& [name, output] : outputs)
    for (const TensorView& part : output.parts) total_bytes += part.size_bytes();
  GgufWriter writer;
  set_metadata(checkpoint, options, writer);
  for (const auto& entry : outputs) {
    const Output& output = entry.second;
    writer.add_tensor(entry.first, output.dtype, shape_of(output), [&](std::span<std::byte> out) {
      const std::size_t part_bytes = out.size() / output.parts.size();
      for (std::size_t i = 0; i < output.parts.size(); ++i) {
        write_part(output.parts[i], output, out.data() + i * part_bytes);
        checkpoint.release(output.parts[i]);
        done_bytes += output.parts[i].size_bytes();
        if (options.progress) options.progress(done_bytes, total_bytes);
      }
    });
  }
  DUNLIN_TRY(writer.write(path));
  Outcome unchanged = checkpoint.check_unchanged();
  std::error_code ignored;
  if (!unchanged) std::filesystem::remove(path, ignored);  // made of what is no longer there
  return unchanged;
}

}  // namespace dunlin
