// Three real models against the log-probabilities that Hugging Face transformers gives in float32
// for the same weights (tests/golden/real). `dunlin pull` fetches the models; where one is missing
// its tests are skipped and say so.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <optional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/function_ref.h"
#include "kernels/softmax.h"
#include "model/open_model.h"
#include "model/sequence_set.h"
#include "support/real_models.h"

namespace dunlin {
namespace {

struct RealModel {
  const char* golden;  // tests/golden/real/NAME.json
  const char* file;
};
std::ostream& operator<<(std::ostream& out, const RealModel& model) { return out << model.golden; }

constexpr RealModel kModels[] = {
    {"smollm2", support::kSmolLm2File},
    {"qwen25-coder", support::kQwenCoderFile},
    {"gemma3", support::kGemma3File},
};

// A greedy choice with a smaller margin than this may go either way in a right engine.
constexpr double kMargin = 0.3;
constexpr int kTopCompared = 10;  // of last_top20

struct Prompt {
  std::vector<TokenId> ids, greedy_ids;
  std::vector<double> greedy_margins, token_logprobs;
  std::vector<std::pair<TokenId, double>> last_top20;
};

std::vector<Prompt> load_prompts(const RealModel& model) {
  std::ifstream file(std::string(DUNLIN_TESTS_DIR "/golden/real/") + model.golden + ".json");
  std::vector<Prompt> prompts;
  for (const nlohmann::json& one : nlohmann::json::parse(file)) {
    prompts.push_back({one["ids"], one["greedy_ids"], one["greedy_margins"], one["token_logprobs"],
                       one["last_top20"]});
  }
  return prompts;
}

std::unique_ptr<Model> load(const std::string& path, Isa isa, KvFormats kv_formats) {
  LoadOptions options;
  options.isa = isa;
  options.kv_formats = kv_formats;
  Result<OpenedModel> opened = open_model(path, options);
  if (!opened) {
    ADD_FAILURE() << opened.error().message();
    return nullptr;
  }
  return std::move(opened->model);
}

// The prompt and the reference's own continuation in one pass; `take` gets each position's logits.
// (Token by token gives the same bits: decoder_test.)
void run(Model& model, const Prompt& prompt,
         FunctionRef<void(std::size_t position, std::span<const float> row)> take) {
  std::vector<TokenId> ids = prompt.ids;
  ids.insert(ids.end(), prompt.greedy_ids.begin(), prompt.greedy_ids.end() - 1);
  std::vector<std::int32_t> all(ids.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
  SequenceSet set(model, 1, static_cast<int>(ids.size()), static_cast<int>(ids.size()),
                  static_cast<int>(ids.size()));
  const SequenceSet::Part part{0, ids, all};
  const std::span<const float> rows = set.step({&part, 1});
  const auto vocab = static_cast<std::size_t>(model.limits().vocab_size);
  for (std::size_t i = 0; i < ids.size(); ++i) take(i, rows.subspan(i * vocab, vocab));
}

// Distances of one prompt from the golden file.
struct Distance {
  double top_mean = 0, top_max = 0;        // first ten of last_top20
  double prompt_mean = 0, prompt_max = 0;  // token_logprobs
  std::optional<double> left_at_margin;    // largest margin at which the greedy choice differs
};

Distance measure(Model& model, const Prompt& prompt) {
  Distance d;
  const std::size_t last = prompt.ids.size() - 1;
  run(model, prompt, [&](std::size_t position, std::span<const float> row) {
    const double norm = log_sum_exp(Isa::kReference, row.data(), std::ssize(row));
    const auto log_p = [&](TokenId id) { return row[static_cast<std::size_t>(id)] - norm; };
    if (position < last) {
      const double diff =
          std::fabs(log_p(prompt.ids[position + 1]) - prompt.token_logprobs[position]);
      d.prompt_mean += diff / static_cast<double>(last);
      d.prompt_max = std::max(d.prompt_max, diff);
      return;
    }
    if (position == last) {
      for (std::size_t i = 0; i < kTopCompared; ++i) {
        const double diff =
            std::fabs(log_p(prompt.last_top20[i].first) - prompt.last_top20[i].second);
        d.top_mean += diff / kTopCompared;
        d.top_max = std::max(d.top_max, diff);
      }
    }
    const std::size_t step = position - last;
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    if (best != prompt.greedy_ids[step]) {
      d.left_at_margin = std::max(d.left_at_margin.value_or(0), prompt.greedy_margins[step]);
    }
  });
  return d;
}

// KL(p || q) of the distributions that two rows of logits give.
double divergence(std::span<const float> p, std::span<const float> q) {
  const double norm_p = log_sum_exp(Isa::kReference, p.data(), std::ssize(p));
  const double norm_q = log_sum_exp(Isa::kReference, q.data(), std::ssize(q));
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double log_p = p[i] - norm_p;
    sum += std::exp(log_p) * (log_p - (q[i] - norm_q));
  }
  return sum;
}

void print(const RealModel& model, std::string_view path, std::size_t i, const Distance& d) {
  std::printf(
      "%-12s %-13s case %zu: top 10 mean %.5f max %.5f, prompt mean %.5f max %.5f, greedy %s\n",
      model.golden, std::string(path).c_str(), i, d.top_mean, d.top_max, d.prompt_mean,
      d.prompt_max,
      d.left_at_margin ? ("differs, largest margin " + std::to_string(*d.left_at_margin)).c_str()
                       : "equal");
}

class RealModelTest : public ::testing::TestWithParam<RealModel> {};

TEST_P(RealModelTest, reference_path_gives_the_golden_log_probabilities) {
  DUNLIN_REAL_MODEL_OR_SKIP(path, GetParam().file);
  const std::unique_ptr<Model> model = load(path, Isa::kReference, KvFormat::kF32);
  const std::vector<Prompt> prompts = load_prompts(GetParam());
  ASSERT_TRUE(model != nullptr);
  ASSERT_EQ(prompts.size(), 5u);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const Distance d = measure(*model, prompts[i]);
    print(GetParam(), "reference", i, d);
    EXPECT_LE(d.top_mean, 0.005) << i;
    EXPECT_LE(d.top_max, 0.02) << i;
    EXPECT_LE(d.prompt_mean, 0.005) << i;
    EXPECT_LE(d.prompt_max, 0.02) << i;
    EXPECT_LT(d.left_at_margin.value_or(0), kMargin) << i;
  }
}

// reference-q8 is AVX2's arithmetic in scalar loops, so they agree far within the limit; wider
// vectors add in another order, which the roundings of activations then amplify.
TEST_P(RealModelTest, avx2_hardly_differs_from_scalar_loops_of_the_same_arithmetic) {
  DUNLIN_REAL_MODEL_OR_SKIP(path, GetParam().file);
  if (best_isa() < Isa::kAvx2) GTEST_SKIP() << "this machine has no AVX2";
  const std::unique_ptr<Model> fast = load(path, Isa::kAvx2, KvFormat::kF16);
  const std::unique_ptr<Model> scalar = load(path, Isa::kReferenceQ8, KvFormat::kF16);
  ASSERT_TRUE(fast != nullptr && scalar != nullptr);
  // Scalar loops are slow: the first prompt is the shortest.
  const Prompt prompt = load_prompts(GetParam()).front();
  std::vector<std::vector<float>> rows;
  run(*scalar, prompt,
      [&](std::size_t, std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); });
  double sum = 0;
  run(*fast, prompt, [&](std::size_t position, std::span<const float> row) {
    sum += divergence(rows[position], row);
  });
  const double mean = sum / static_cast<double>(rows.size());
  std::printf("%-12s KL divergence of avx2 from reference-q8: %.3g over %zu positions\n",
              GetParam().golden, mean, rows.size());
  EXPECT_LE(std::fabs(mean), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Golden, RealModelTest, ::testing::ValuesIn(kModels),
                         [](const auto& param_info) {
                           std::string name = param_info.param.golden;
                           std::erase(name, '-');
                           return name;
                         });

// Over all fifteen cases, so it needs the three models.
TEST(RealModels, fast_path_is_closer_to_the_golden_log_probabilities_than_its_limit) {
  double sum = 0;
  int count = 0;
  for (const RealModel& real : kModels) {
    DUNLIN_REAL_MODEL_OR_SKIP(path, real.file);
    const std::unique_ptr<Model> model = load(path, best_isa(), KvFormat::kF16);
    ASSERT_TRUE(model != nullptr);
    const std::vector<Prompt> prompts = load_prompts(real);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const Distance d = measure(*model, prompts[i]);
      print(real, isa_name(best_isa()), i, d);
      EXPECT_LE(d.top_mean, 0.16) << real.golden << " " << i;
      EXPECT_LT(d.left_at_margin.value_or(0), kMargin) << real.golden << " " << i;
      sum += d.top_mean;
      ++count;
    }
  }
  std::printf("mean over %d cases: %.5f\n", count, sum / count);
  EXPECT_EQ(count, 15);
  EXPECT_LE(sum / count, 0.08);
}

}  // namespace
}  // namespace dunlin
