// The phases between linear layers, for one token and for 64: embed, add_norm and gated_rows with
// the quantisation of their results, and that quantisation alone.
//   kernels_bench --benchmark_filter='embed|add_norm|gated_rows|set_row'
#include <memory>
#include <numeric>

#include "kernels/activation.h"
#include "kernels/embed.h"
#include "kernels/gemm_panels.h"
#include "kernels/gemm_test_support.h"
#include "kernels/norm.h"
#include "kernels/row_bench.h"

namespace dunlin::testing {
namespace {

// What int8 activations take a row of n: their codes, and a scale and two sums for each 32.
constexpr std::int64_t quantized_bytes(std::int64_t n) {
  return n / 32 * static_cast<std::int64_t>(sizeof(ActivationBlock));
}

std::string shape_name(std::int64_t n, std::int64_t tokens) {
  return std::to_string(n) + "/" + std::to_string(tokens);
}

std::shared_ptr<Activations> make_activations(Isa isa, std::int64_t n, std::int64_t tokens) {
  auto activations = std::make_shared<Activations>();
  activations->reserve(tokens, n, isa == Isa::kReference);
  activations->reset(n);
  return activations;
}

RowBench set_row_bench(std::int64_t n, std::int64_t tokens) {
  return {"set_row/" + shape_name(n, tokens), tokens, 4 * n + quantized_bytes(n), [=](Isa isa) {
            return [=, x = random_floats(n * tokens, 1), out = make_activations(isa, n, tokens)] {
              for (std::int64_t t = 0; t < tokens; ++t) out->set_row(isa, t, x.data() + t * n);
            };
          }};
}

// post_norm: Gemma's, which norm the sum's second term before they add it.
RowBench add_norm_bench(std::int64_t n, std::int64_t tokens, bool post_norm) {
  const std::string name = post_norm ? "add_norm/post/" : "add_norm/";
  const std::int64_t bytes = 16 * n + quantized_bytes(n);
  return {name + shape_name(n, tokens), tokens, bytes, [=](Isa isa) {
            return
                [=, pool = std::make_shared<ThreadPool>(1), out = make_activations(isa, n, tokens),
                 residual = random_floats(n * tokens, 1), delta = random_floats(n * tokens, 2),
                 normed = random_floats(n * tokens, 3), weight = random_floats(n, 4)]() mutable {
                  const Norm norm{NormType::kRms, weight.data(), nullptr, 1e-6f};
                  const AddNorm op{.residual = residual.data(),
                                   .delta = delta.data(),
                                   .delta_norm = post_norm ? norm : Norm{},
                                   .norm = norm,
                                   .n = n,
                                   .normed = normed.data()};
                  add_norm(*pool, isa, op, tokens, out.get());
                };
          }};
}

// A gate of 20 and a factor of 1 come out as they went in, however often.
RowBench gated_rows_bench(std::string name, GateFunction function, std::int64_t n,
                          std::int64_t tokens) {
  name = "gated_rows/" + name + "/" + shape_name(n, tokens);
  return {name, tokens, 12 * n + quantized_bytes(n), [=](Isa isa) {
            const auto size = static_cast<std::size_t>(n * tokens);
            return
                [=, pool = std::make_shared<ThreadPool>(1), out = make_activations(isa, n, tokens),
                 gate = std::vector<float>(size, 20), up = std::vector<float>(size, 1)]() mutable {
                  gated_rows(*pool, isa, function, gate.data(), up.data(), n, n, tokens, out.get());
                };
          }};
}

RowBench embed_bench(DType dtype, std::int64_t n, std::int64_t tokens) {
  const std::string name = "embed/" + std::string(dtype_info(dtype).name) + "/";
  return {name + shape_name(n, tokens), tokens, 4 * n + row_bytes(dtype, n), [=](Isa isa) {
            constexpr std::int64_t kRows = 4096;
            auto pool = std::make_shared<ThreadPool>(1);
            const StoredMatrix stored = random_matrix(dtype, kRows, n, 1);
            // A tied output layer's panels, or rows as they are stored.
            auto table = std::make_shared<PackedMatrix>(
                PackedMatrix::pack(stored.view(), RowOrder{}, isa, *pool).value());
            std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens));
            for (std::size_t t = 0; t < ids.size(); ++t)
              ids[t] = static_cast<std::int32_t>(t * 2654435761u % kRows);
            return [=, out = random_floats(n * tokens, 1)]() mutable {
              embed(*pool, *table, ids, 25, out.data());
            };
          }};
}

const bool kRegistered = register_row_benches({
    set_row_bench(896, 1),
    set_row_bench(4864, 1),
    set_row_bench(896, 64),
    add_norm_bench(576, 1, false),
    add_norm_bench(896, 1, false),
    add_norm_bench(896, 64, false),
    add_norm_bench(640, 1, true),
    gated_rows_bench("silu", GateFunction::kSilu, 4864, 1),
    gated_rows_bench("silu", GateFunction::kSilu, 4864, 64),
    gated_rows_bench("gelu_tanh", GateFunction::kGeluTanh, 2048, 1),
    embed_bench(DType::kQ8_0, 896, 1),
    embed_bench(DType::kQ8_0, 896, 64),
    embed_bench(DType::kQ6_K, 1024, 1),
    embed_bench(DType::kQ4_1, 576, 1),
    embed_bench(DType::kF16, 896, 1),
});

}  // namespace
}  // namespace dunlin::testing
