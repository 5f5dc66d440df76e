// The promises of a step on tiny random models: a token's logits depend on its own sequence and on
// nothing else, bit for bit.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>

#include "base/row_maxima.h"
#include "cpu/isa.h"
#include "model/loader.h"
#include "model/sequence_set.h"
#include "model/single_sequence.h"
#include "support/random_weights.h"

namespace dunlin {
namespace {

using Rows = std::vector<std::vector<float>>;

constexpr int kLength = 150;  // nine blocks and a bit, four times the window of the tiny Gemma

struct Case {
  std::string name;
  ModelConfig config;
  std::vector<DType> types;
  Isa isa;
  KvFormats kv_formats{};
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

// Passes steps on, and holds the maxima against the logits.
class MaximaModel final : public Model {
 public:
  explicit MaximaModel(Model& model) : model_(model) {}
  const ModelLimits& limits() const override { return model_.limits(); }
  const KvLayout& kv_layout() const override { return model_.kv_layout(); }
  void reserve(int max_tokens, int max_seqs, int max_outputs) override {
    model_.reserve(max_tokens, max_seqs, max_outputs);
  }
  void forward(const ForwardBatch& batch, KvStorage& kv, const ForwardOutputs& outputs) override {
    const std::span<float> logits = outputs.logits;
    const auto vocab_size = static_cast<std::size_t>(limits().vocab_size);
    const std::size_t per_row = maxima_size(vocab_size);
    std::vector<float> maxima(static_cast<std::size_t>(batch.num_outputs()) * per_row, 1e9f);
    model_.forward(batch, kv, {logits, maxima});
    for (std::size_t i = 0; i < maxima.size(); ++i) {
      const auto row = logits.subspan(i / per_row * vocab_size, vocab_size);
      const auto block = row.subspan(i % per_row * kMaximaBlock);
      const auto end = block.begin() + std::min<std::ptrdiff_t>(kMaximaBlock, std::ssize(block));
      EXPECT_EQ(maxima[i], *std::max_element(block.begin(), end)) << i;
    }
    num_rows += batch.num_outputs();
  }
  int num_rows = 0;

 private:
  Model& model_;
};

// Every format on a model with biases of keys and on one with latents; heads of odd sizes.
void add_kv_formats(Isa isa, std::vector<Case>& all) {
  const std::string isa_word = "_" + std::string(isa_name(isa));
  const std::vector<DType> types = {DType::kQ8_0, DType::kF16};
  for (const KvFormat format : {KvFormat::kBF16, KvFormat::kFp8E4M3, KvFormat::kFp8E5M2,
                                KvFormat::kInt8, KvFormat::kInt4}) {
    const std::string name = "_" + std::string(kv_format_info(format).name) + isa_word;
    all.push_back({"qwen2" + name, testing::tiny_qwen2(), types, isa, format});
    if (format >= KvFormat::kInt8)
      all.push_back({"latent" + name, testing::tiny_deepseek(), types, isa, format});
  }
  all.push_back({"gemma3_mixed" + isa_word,
                 testing::tiny_gemma3(),
                 types,
                 isa,
                 {KvFormat::kInt8, KvFormat::kInt4}});
  if (isa != best_isa()) return;
  for (const int head_dim : {80, 96, 112, 256}) {
    for (const KvFormat format : {KvFormat::kInt8, KvFormat::kInt4}) {
      ModelConfig config = testing::tiny_llama();
      config.layers.resize(2);
      config.head_dim = head_dim;
      config.ropes[0].dims = head_dim;
      all.push_back(
          {"heads_of_" + std::to_string(head_dim) + "_" + std::string(kv_format_info(format).name),
           config, types, isa, format});
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Isa isa : supported_isas()) add_kv_formats(isa, all);
  for (const Isa isa : supported_isas()) {
    for (const ModelConfig& config :
         {testing::tiny_llama(), testing::tiny_qwen2(), testing::tiny_gemma3()}) {
      const std::string name = config.architecture + "_" + std::string(isa_name(isa));
      // Plain floats on the two ISAs that matter most: their linear layers are simple.
      if (isa == Isa::kReference || isa == best_isa()) {
        all.push_back({name + "_float", config, {DType::kF32, DType::kBF16, DType::kF16}, isa});
      }
      all.push_back(
          {name + "_blocks", config, {DType::kQ8_0, DType::kQ4_1, DType::kQ5_0, DType::kF16}, isa});
    }
    for (const ModelConfig& experts : {testing::tiny_qwen2moe(), testing::tiny_gpt_oss()}) {
      all.push_back({experts.architecture + "_" + std::string(isa_name(isa)),
                     experts,
                     {DType::kQ8_0, DType::kF32, DType::kQ4_1, DType::kQ5_0},
                     isa});
    }
    for (const ModelConfig& plain : {testing::tiny_gpt2(), testing::tiny_falcon()}) {
      all.push_back({plain.architecture + "_" + std::string(isa_name(isa)),
                     plain,
                     {DType::kF16, DType::kQ8_0, DType::kQ5_0},
                     isa});
    }
    // Two more with latent attention: float and blocks, queries with a latent and without.
    ModelConfig latent = testing::tiny_deepseek();
    const std::string latent_name = latent.architecture + "_" + std::string(isa_name(isa));
    all.push_back({latent_name + "_blocks", latent, {DType::kQ8_0, DType::kQ4_1}, isa});
    latent.latent.q_rank = 0;
    all.push_back({latent_name + "_float", latent, {DType::kF32, DType::kBF16}, isa});
    // Wide enough for blocks of 256.
    ModelConfig wide = testing::tiny_llama();
    wide.hidden_size = 256;
    wide.ffn_size = 512;
    wide.layers.resize(2);
    all.push_back({"wide_" + std::string(isa_name(isa)),
                   wide,
                   {DType::kQ4_K, DType::kQ6_K, DType::kQ5_K, DType::kQ8_0, DType::kQ4_0},
                   isa});
  }
  return all;
}

class DecoderTest : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Model> load(int num_threads = 2) const {
    return load(GetParam().isa, num_threads);
  }
  static std::unique_ptr<Model> load(Isa isa, int num_threads = 2) {
    testing::RandomWeightsOptions options;
    options.seed = 11;
    options.matrix_types = GetParam().types;
    options.interleaved_qk = GetParam().config.architecture == "llama";
    const testing::RandomWeights source(GetParam().config, options);
    LoadOptions load_options;
    load_options.isa = isa;
    load_options.num_threads = num_threads;
    load_options.kv_formats = GetParam().kv_formats;
    Result<std::unique_ptr<Model>> model = load_model(source, GetParam().config, load_options);
    EXPECT_TRUE(model) << model.error().message();
    return std::move(*model);
  }

  static std::vector<TokenId> tokens(int seed, int length = kLength) {
    std::vector<TokenId> ids;
    for (int i = 0; i < length; ++i) ids.push_back((i * i * 7 + seed * 131 + i) % 331);
    return ids;
  }

  // Logits at every position, in chunks of the given size.
  static Rows run(Model& model, const std::vector<TokenId>& ids, int chunk) {
    SingleSequence sequence(model, kLength, chunk);
    std::vector<std::int32_t> all(ids.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
    Rows rows;
    sequence.append(ids, all, [&](std::int32_t, std::span<const float> row) {
      rows.emplace_back(row.begin(), row.end());
    });
    return rows;
  }

  static void expect_sane(const Rows& rows) {
    for (const std::vector<float>& row : rows) {
      const auto [low, high] = std::minmax_element(row.begin(), row.end());
      ASSERT_TRUE(std::isfinite(*low) && std::isfinite(*high));
      ASSERT_GT(*high - *low, 0.1f);
    }
    ASSERT_NE(rows[kLength - 1], rows[kLength - 2]);
  }
};

TEST_P(DecoderTest, a_prompt_in_chunks_or_token_by_token_equals_the_whole) {
  const std::unique_ptr<Model> model = load();
  const std::vector<TokenId> ids = tokens(1);
  const Rows whole = run(*model, ids, kLength);
  ASSERT_EQ(whole.size(), ids.size());
  expect_sane(whole);
  for (const int chunk : {1, 37}) EXPECT_EQ(run(*model, ids, chunk), whole) << chunk;
}

TEST_P(DecoderTest, the_number_of_threads_changes_nothing) {
  const std::vector<TokenId> ids = tokens(2);
  EXPECT_EQ(run(*load(3), ids, 50), run(*load(1), ids, 50));
}

TEST_P(DecoderTest, a_sequence_in_a_mixed_batch_equals_its_run_alone) {
  const std::unique_ptr<Model> model = load();
  const std::vector<TokenId> a = tokens(3), b = tokens(4), c = tokens(5);
  const Rows alone_a = run(*model, a, kLength), alone_b = run(*model, b, kLength),
             alone_c = run(*model, c, kLength);

  // A prefills in pieces of 50 while B decodes token by token and C does pieces of 13.
  SequenceSet set(*model, 3, kLength, 128, 8);
  const auto vocab = static_cast<std::size_t>(model->limits().vocab_size);
  const auto part = [](int seq, const std::vector<TokenId>& ids, int begin, int size,
                       const std::vector<std::int32_t>& wanted) {
    return SequenceSet::Part{
        seq,
        std::span(ids).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size)),
        wanted};
  };
  const std::vector<std::int32_t> first = {0}, ends_a = {0, 17, 49}, ends_c = {12}, none;
  for (int round = 0; round < 11; ++round) {
    std::vector<SequenceSet::Part> parts = {part(2, c, round * 13, 13, ends_c),
                                            part(1, b, round, 1, first)};
    if (round < 3) parts.push_back(part(0, a, round * 50, 50, round == 1 ? none : ends_a));
    const std::span<const float> rows = set.step(parts);
    const auto row = [&](std::size_t i) {
      return std::vector<float>(rows.begin() + static_cast<std::ptrdiff_t>(i * vocab),
                                rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * vocab));
    };
    const auto at = [](int i) { return static_cast<std::size_t>(i); };
    EXPECT_EQ(row(0), alone_c[at(round * 13 + 12)]);
    EXPECT_EQ(row(1), alone_b[at(round)]);
    if (round == 0 || round == 2) {
      EXPECT_EQ(row(2), alone_a[at(round * 50)]);
      EXPECT_EQ(row(3), alone_a[at(round * 50 + 17)]);
      EXPECT_EQ(row(4), alone_a[at(round * 50 + 49)]);
    }
  }
}

TEST_P(DecoderTest, blocks_behind_a_window_may_be_freed_and_a_tail_taken_back) {
  const std::unique_ptr<Model> model = load();
  const std::vector<TokenId> ids = tokens(6);
  const Rows whole = run(*model, ids, kLength);
  SequenceSet set(*model, 1, kLength, 32, 1);
  std::size_t done = 0;
  const auto append = [&](std::size_t size) {
    const std::int32_t last = static_cast<std::int32_t>(size) - 1;
    const SequenceSet::Part part{0, std::span(ids).subspan(done, size), {&last, 1}};
    const std::span<const float> row = set.step({&part, 1});
    done += size;
    return std::vector<float>(row.begin(), row.end());
  };
  while (done < ids.size()) {
    const std::size_t size = std::min<std::size_t>(11, ids.size() - done);
    std::vector<float> row = append(size);
    ASSERT_EQ(row, whole[done - 1]) << done;
    if (size == 11) {
      // As after a refused draft: the last three once more.
      set.truncate(0, static_cast<int>(done) - 3);
      done -= 3;
      row = append(3);
      ASSERT_EQ(row, whole[done - 1]) << done;
    }
    set.free_behind_windows();
  }
}

TEST_P(DecoderTest, weights_are_read_once_a_step_whatever_the_batch) {
  const std::unique_ptr<Model> model = load();
  const std::vector<TokenId> a = tokens(7), b = tokens(8);
  SequenceSet set(*model, 2, kLength, 64, 2);
  const std::int32_t last = 0;
  const auto bytes_of = [&](std::span<const SequenceSet::Part> parts) {
    const std::uint64_t before = model->counters().weight_bytes_read;
    set.step(parts);
    return model->counters().weight_bytes_read - before;
  };
  const SequenceSet::Part one[] = {{0, std::span(a).first(1), {&last, 1}}};
  const SequenceSet::Part two[] = {{0, std::span(a).subspan(1, 40), {&last, 1}},
                                   {1, std::span(b).first(20), {&last, 1}}};
  const std::uint64_t bytes = bytes_of(one);
  EXPECT_GT(bytes, 0u);
  const std::uint64_t more_tokens = bytes_of(two);
  if (GetParam().config.moe.num_experts == 0)
    EXPECT_EQ(more_tokens, bytes);
  else
    EXPECT_GT(more_tokens, bytes);  // moe_test.cc counts
  EXPECT_EQ(model->counters().num_forwards, 2u);
}

// The scalar loops of reference-q8 define what the fast path computes. Only bit equality will do:
// a last bit tips int8 roundings, and those grow from layer to layer (float_reference_q8.cc).
TEST_P(DecoderTest, vectors_of_eight_equal_the_scalar_loops_of_reference_q8) {
  const Isa isa = GetParam().isa;
  if (isa != Isa::kAvx2 && isa != Isa::kNeon) return;
  const std::vector<TokenId> ids = tokens(9);
  const Rows want = run(*load(Isa::kReferenceQ8), ids, kLength);
  EXPECT_EQ(run(*load(isa), ids, kLength), want);
}

INSTANTIATE_TEST_SUITE_P(All, DecoderTest, ::testing::ValuesIn(cases()),
                         [](const auto& param_info) {
                           std::string name = param_info.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Errors of the loader itself.

TEST(Loader, refuses_a_norm_that_is_not_a_number) {
  const ModelConfig config = testing::tiny_llama();
  testing::RandomWeights source(config, {});
  LoadOptions options;
  options.isa = Isa::kReference;
  options.kv_formats = KvFormat::kF32;
  std::fill_n(source.bytes("blk.1.ffn_norm.weight").begin(), 4, std::byte{0xff});
  EXPECT_THAT(load_model(source, config, options).error().message(),
              ::testing::HasSubstr("blk.1.ffn_norm.weight"));
}

TEST(Loader, reports_progress_up_to_the_whole) {
  const ModelConfig config = testing::tiny_qwen2();
  const testing::RandomWeights source(config, {});
  LoadOptions options;
  options.isa = Isa::kReference;
  std::vector<std::int64_t> seen;
  std::int64_t total = 0;
  options.progress = [&](std::int64_t done, std::int64_t all) {
    seen.push_back(done);
    total = all;
  };
  ASSERT_TRUE(load_model(source, config, options));
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), total);
}

TEST(Decoder, GivesTheMaximaOfItsLogits) {
  for (const float softcap : {0.0f, 2.0f}) {
    ModelConfig config = testing::tiny_llama();
    config.logit_softcap = softcap;
    for (const Isa isa : supported_isas()) {
      LoadOptions options;
      options.isa = isa;
      options.num_threads = 2;
      const testing::RandomWeights source(config, {});
      const auto model = load_model(source, config, options);
      ASSERT_TRUE(model);
      MaximaModel checking(**model);
      SequenceSet set(checking, 1, 64, 64, 64);
      const std::vector<TokenId> ids(20, 7);
      const std::vector<std::int32_t> wanted = {3, 4, 19};
      const SequenceSet::Part part{0, ids, wanted};
      set.step({&part, 1});
      EXPECT_EQ(checking.num_rows, 3);
    }
  }
}

}  // namespace
}  // namespace dunlin
