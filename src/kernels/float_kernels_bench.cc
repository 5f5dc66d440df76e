// Operations on one row: a norm, RoPE, a token's keys and values, gates, softmax, the soft cap.
//   kernels_bench --benchmark_filter='rms_norm|apply_rope|kv_write|gated/|softmax'
#include <memory>
#include <numeric>

#include "kernels/activation.h"
#include "kernels/gemm_test_support.h"
#include "kernels/kv_write.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "kernels/row_bench.h"
#include "kernels/softmax.h"
#include "tensor/buffer.h"

namespace dunlin::testing {
namespace {

RowBench rms_norm_bench(std::int64_t n) {
  return {"rms_norm/" + std::to_string(n), 1, 12 * n, [n](Isa isa) {
            return [isa, n, x = random_floats(n, 1), weight = random_floats(n, 2),
                    y = random_floats(n, 3)]() mutable {
              rms_norm(isa, x.data(), weight.data(), 1e-6f, n, y.data());
            };
          }};
}

RowBench gated_bench(std::string name, GateFunction function, std::int64_t n) {
  return {"gated/" + name + "/" + std::to_string(n), 1, 12 * n, [=](Isa isa) {
            return [=, gate = random_floats(n, 1), up = random_floats(n, 2),
                    y = random_floats(n, 3)]() mutable {
              gated(isa, function, gate.data(), up.data(), n, y.data());
            };
          }};
}

RowBench softcap_bench(std::int64_t n) {
  return {"softcap/" + std::to_string(n), 1, 8 * n, [n](Isa isa) {
            return [isa, n, x = random_floats(n, 1)]() mutable { softcap(isa, 30, n, x.data()); };
          }};
}

RowBench softmax_bench(std::int64_t n) {
  return {"softmax/" + std::to_string(n), 1, 8 * n, [n](Isa isa) {
            return [isa, n, x = random_floats(n, 1)]() mutable { softmax(isa, n, x.data()); };
          }};
}

RowBench log_sum_exp_bench(std::int64_t n) {
  return {"log_sum_exp/" + std::to_string(n), 1, 4 * n, [n](Isa isa) {
            return [isa, n, x = random_floats(n, 1)] {
              benchmark::DoNotOptimize(log_sum_exp(isa, x.data(), n));
            };
          }};
}

// The query and key heads of a token.
RowBench apply_rope_bench(std::string name, RopeStyle style, int heads, int dim) {
  const std::int64_t n = std::int64_t{heads} * dim;
  name = "apply_rope/" + name + "/" + std::to_string(heads) + "x" + std::to_string(dim);
  return {name, 1, 8 * n, [=](Isa) {
            ThreadPool pool(1);
            const auto half = static_cast<std::size_t>(dim / 2);
            std::vector<float> cos(half), sin(half);
            const std::int32_t position = 1000;
            rope_table(pool, rope_frequencies(dim, 1e6), {&position, 1}, cos.data(), sin.data());
            return [=, x = random_floats(n, 1)]() mutable {
              apply_rope(style, cos.data(), sin.data(), dim, heads, dim, x.data());
            };
          }};
}

RowBench rope_table_bench(int dim, std::int64_t tokens) {
  const std::string name = "rope_table/" + std::to_string(dim) + "/" + std::to_string(tokens);
  return {name, tokens, 4 * dim, [=](Isa) {
            const auto size = static_cast<std::size_t>(tokens * dim / 2);
            std::vector<std::int32_t> positions(static_cast<std::size_t>(tokens));
            std::iota(positions.begin(), positions.end(), 1000);
            return [=, pool = std::make_shared<ThreadPool>(1),
                    frequencies = rope_frequencies(dim, 1e6), cos = std::vector<float>(size),
                    sin = std::vector<float>(size)]() mutable {
              rope_table(*pool, frequencies, positions, cos.data(), sin.data());
            };
          }};
}

// A token after the other, each into its slot of 64 blocks.
RowBench kv_write_bench(KvFormat format, int heads, int dim) {
  const std::int64_t n = std::int64_t{heads} * dim;
  const std::string name = "kv_write/" + std::string(kv_format_info(format).name) + "/" +
                           std::to_string(heads) + "x" + std::to_string(dim);
  const KvPart keys = key_part(format, heads, dim), values = value_part(format, heads, dim);
  const std::int64_t stride = keys.block_bytes + values.block_bytes;
  return {name, 1, 2 * n * 4 + stride / kKvBlockSize, [=](Isa isa) {
            constexpr std::int64_t kBlocks = 64;
            auto arena = std::make_shared<Buffer>(static_cast<std::size_t>(kBlocks * stride));
            const PagedKvLayer layer{.base = arena->data(),
                                     .block_stride = stride,
                                     .k_offset = 0,
                                     .v_offset = keys.block_bytes,
                                     .num_kv_heads = heads,
                                     .head_dim_k = dim,
                                     .head_dim_v = dim,
                                     .k = keys,
                                     .v = values};
            return [=, slot = std::int64_t{0}, k = random_floats(n, 1),
                    v = random_floats(n, 2)]() mutable {
              static_cast<void>(arena);
              kv_write(isa, layer, slot, k.data(), v.data());
              slot = (slot + 1) % (kBlocks * kKvBlockSize);
            };
          }};
}

// Widths of SmolLM2 135M, Gemma 3 270M and Qwen2.5 0.5B.
const bool kRegistered = register_row_benches({
    rms_norm_bench(576),
    rms_norm_bench(640),
    rms_norm_bench(896),
    gated_bench("silu", GateFunction::kSilu, 1536),
    gated_bench("silu", GateFunction::kSilu, 4864),
    gated_bench("gelu_tanh", GateFunction::kGeluTanh, 2048),
    softcap_bench(896),
    softmax_bench(512),
    log_sum_exp_bench(151936),
    apply_rope_bench("rotate_half", RopeStyle::kRotateHalf, 16, 64),
    apply_rope_bench("rotate_half", RopeStyle::kRotateHalf, 5, 256),
    apply_rope_bench("interleaved", RopeStyle::kInterleaved, 16, 64),
    rope_table_bench(64, 1),
    rope_table_bench(64, 512),
    kv_write_bench(KvFormat::kF16, 2, 64),
    kv_write_bench(KvFormat::kBF16, 2, 64),
    kv_write_bench(KvFormat::kFp8E4M3, 2, 64),
    kv_write_bench(KvFormat::kInt8, 2, 64),
    kv_write_bench(KvFormat::kInt4, 2, 64),
    kv_write_bench(KvFormat::kF32, 2, 64),
    kv_write_bench(KvFormat::kF16, 1, 256),
});

}  // namespace
}  // namespace dunlin::testing
