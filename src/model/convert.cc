#include "model/convert.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/quote.h"
#include "cpu/thread_pool.h"
#include "model/registry.h"
#include "model/weights.h"
#include "quant/finite_check.h"
#include "quant/row_converter.h"
#include "tensor/row_order.h"

namespace dunlin {
namespace {

constexpr std::int64_t kSliceBytes = 32 << 20;   // of a tensor, between two reports of progress
constexpr std::int64_t kChunkBytes = 128 << 10;  // of a slice, for a thread

// llama.cpp's number for "mostly of this type".
std::uint32_t file_type(const std::optional<QuantRecipe>& recipe, DType stored) {
  if (recipe) return recipe->file_type();
  return stored == DType::kF32 ? 0 : stored == DType::kBF16 ? 32 : 1;
}

// One tensor of the file: a tensor of the checkpoint, or its experts' one behind the other.
struct Output {
  std::vector<CheckpointTensor> parts;
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

std::map<std::string, Output> outputs_of(const HfCheckpoint& checkpoint, const ModelConfig& config,
                                         const std::optional<QuantRecipe>& recipe) {
  std::map<std::string, Output> outputs;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    const auto expert = expert_of(tensor.name);
    const std::string& name = expert ? expert->first : tensor.name;
    Output& output = outputs[name];
    const std::size_t idx = expert ? expert->second : 0;
    if (output.parts.size() <= idx) output.parts.resize(idx + 1);
    output.parts[idx] = tensor;
    output.dtype = is_never_quantized(name, tensor.view)
                       ? DType::kF32
                       : loaded_type(recipe, name, tensor.view, config);
    if (config.gguf_interleaves_qk && is_q_or_k(name))
      output.order.interleaved_head_dim = config.head_dim;
  }
  return outputs;
}

// Writes tensors' bytes, with all threads.
class TensorMaker {
 public:
  TensorMaker(const HfCheckpoint& checkpoint, const ConvertOptions& options,
              std::int64_t total_bytes)
      : checkpoint_(checkpoint),
        options_(options),
        total_bytes_(total_bytes),
        pool_(options.num_threads) {}

  Outcome make(const Output& output, std::span<std::byte> out) {
    const std::size_t part_bytes = out.size() / output.parts.size();
    for (std::size_t i = 0; i < output.parts.size(); ++i) {
      const std::string& name = output.parts[i].name;
      checkpoint_.prepare(name);
      const TensorView view = *checkpoint_.find(name);
      DUNLIN_TRY(make_part(view, output, out.data() + i * part_bytes));
      checkpoint_.release(view);
      checkpoint_.discard(name);
    }
    return {};
  }

 private:
  // Row (of a vector: element) r of the checkpoint goes to stored_row(r) of the file.
  Outcome make_part(TensorView view, const Output& output, std::byte* out) {
    if (view.rank == 1) {
      view.rank = 2;
      view.shape = {view.shape[0], 1, 1, 1};
    }
    const std::int64_t in_bytes = row_bytes(view.dtype, view.cols());
    const std::int64_t out_bytes = row_bytes(output.dtype, view.cols());
    FiniteCheck finite(view, output.dtype);
    const auto make_rows = [&](std::int64_t first, std::int64_t end) {
      RowConverter converter(view.dtype, output.dtype, view.cols());
      for (std::int64_t row = first; row < end; ++row) {
        std::byte* dst = out + output.order.stored_row(row) * out_bytes;
        if (!converter.convert(view.data + row * in_bytes, dst)) finite.found(row);
      }
    };
    const std::int64_t slice = std::max<std::int64_t>(1, kSliceBytes / in_bytes);
    const std::int64_t chunk = std::max<std::int64_t>(1, kChunkBytes / in_bytes);
    for (std::int64_t first = 0; first < view.rows(); first += slice) {
      const std::int64_t end = std::min(first + slice, view.rows());
      const auto num_chunks = static_cast<int>((end - first + chunk - 1) / chunk);
      pool_.parallel_for(num_chunks, [&](int idx, int) {
        make_rows(first + idx * chunk, std::min(first + (idx + 1) * chunk, end));
      });
      DUNLIN_TRY(report((end - first) * in_bytes));
    }
    return finite.outcome();
  }

  Outcome report(std::int64_t bytes) {
    done_bytes_ += bytes;
    if (!options_.progress || options_.progress(done_bytes_, total_bytes_)) return {};
    return fail(StatusCode::kCancelled, "interrupted");
  }

  const HfCheckpoint& checkpoint_;
  const ConvertOptions& options_;
  const std::int64_t total_bytes_;
  std::int64_t done_bytes_ = 0;
  ThreadPool pool_;
};

std::vector<std::int64_t> shape_of(const Output& output) {
  const TensorView& view = output.parts.front().view;
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
  writer.set_u32("general.file_type", file_type(options.recipe, embedding->dtype));
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
  const std::map<std::string, Output> outputs = outputs_of(checkpoint, config, options.recipe);
  std::int64_t total_bytes = 0;
  for (const auto& [name, output] : outputs)
    for (const CheckpointTensor& part : output.parts) total_bytes += part.view.size_bytes();
  GgufWriter writer;
  set_metadata(checkpoint, options, writer);
  TensorMaker maker(checkpoint, options, total_bytes);
  for (const auto& entry : outputs) {
    const auto fill = [&](std::span<std::byte> out) {
      Outcome made = maker.make(entry.second, out);
      if (made || made.error().code() == StatusCode::kCancelled) return made;
      return Outcome(tl::unexpected<Status>(checkpoint.in_own_words(made.error().with_prefix(
          fmt::format("{}: tensor {}", checkpoint.path(), quote_for_message(entry.first))))));
    };
    writer.add_tensor(entry.first, entry.second.dtype, shape_of(entry.second), fill);
  }
  DUNLIN_TRY(writer.write(path));
  Outcome unchanged = checkpoint.check_unchanged();
  std::error_code ignored;
  if (!unchanged) std::filesystem::remove(path, ignored);  // made of what is no longer there
  return unchanged;
}

}  // namespace dunlin
