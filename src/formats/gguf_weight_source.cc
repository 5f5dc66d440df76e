#include "formats/gguf_weight_source.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

namespace dunlin {
namespace {

// Architectures whose converters interleave the two halves of each head of Q and K.
constexpr std::array<std::string_view, 1> kInterleaved = {"llama"};

// More than any model has; keeps row arithmetic far from its limits.
constexpr std::uint32_t kMaxHeadDim = 1u << 16;

Result<int> interleaved_head_dim(const GgufFile& file) {
  DUNLIN_ASSIGN(architecture, file.get_string("general.architecture"));
  if (std::find(kInterleaved.begin(), kInterleaved.end(), architecture) == kInterleaved.end()) {
    return 0;
  }
  const auto key = [&](std::string_view name) { return fmt::format("{}.{}", architecture, name); };
  std::uint32_t head_dim = 0;
  if (file.has(key("attention.key_length"))) {
    DUNLIN_ASSIGN(key_length, file.get_u32(key("attention.key_length")));
    head_dim = key_length;
  } else {
    DUNLIN_ASSIGN(embedding, file.get_u32(key("embedding_length")));
    DUNLIN_ASSIGN(num_heads, file.get_u32(key("attention.head_count")));
    if (num_heads == 0 || embedding % num_heads != 0) {
      return invalid(fmt::format("{}: {} {} does not divide {} {}", file.path(),
                                 key("attention.head_count"), num_heads, key("embedding_length"),
                                 embedding));
    }
    head_dim = embedding / num_heads;
  }
  if (head_dim == 0 || head_dim > kMaxHeadDim || head_dim % 2 != 0) {
    return invalid(fmt::format("{}: a head has {} dimensions, not an even number from 2 to {}",
                               file.path(), head_dim, kMaxHeadDim));
  }
  return static_cast<int>(head_dim);
}

// blk.N.attn_q.weight, blk.N.attn_k.bias and so on.
bool is_q_or_k(std::string_view name) {
  if (!name.starts_with("blk.")) return false;
  for (const std::string_view end :
       {".attn_q.weight", ".attn_k.weight", ".attn_q.bias", ".attn_k.bias"}) {
    if (name.ends_with(end)) return true;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<GgufWeightSource>> GgufWeightSource::create(
    std::shared_ptr<const GgufFile> file) {
  DUNLIN_ASSIGN(head_dim, interleaved_head_dim(*file));
  return std::unique_ptr<GgufWeightSource>(new GgufWeightSource(std::move(file), head_dim));
}

std::optional<SourceTensor> GgufWeightSource::find(std::string_view name) const {
  const GgufTensor* tensor = file_->find_tensor(name);
  if (tensor == nullptr) return std::nullopt;
  SourceTensor found{tensor->view, RowOrder{}};
  // Rows that are no whole heads would be read past the end; model/ refuses their shape.
  if (interleaved_head_dim_ != 0 && is_q_or_k(name) &&
      tensor->view.shape[0] % interleaved_head_dim_ == 0) {
    found.row_order.interleaved_head_dim = interleaved_head_dim_;
  }
  return found;
}

void GgufWeightSource::release(const SourceTensor& tensor) const { file_->drop_pages(tensor.view); }

}  // namespace dunlin
