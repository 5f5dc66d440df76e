// Three real models against the log-probabilities that Hugging Face transformers gives in float32
// for the same weights (tests/golden/real). The models are fetched into a cache by `dunlin pull`;
// where one is missing its tests are skipped and say so.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "formats/gguf_weight_source.h"
#include "kernels/softmax.h"
#include "model/loader.h"
#include "model/registry.h"
#include "model/single_sequence.h"

namespace dunlin {
namespace {

struct RealModel {
  const char* golden;  // tests/golden/real/NAME.json
  const char* file;
};

constexpr RealModel kModels[] = {
    {"smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"},
    {"qwen25-coder", "Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf"},
    {"gemma3", "gemma-3-270m.Q4_K_M.gguf"},
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

std::string models_dir() {
  if (const char* dir = std::getenv("DUNLIN_MODELS_DIR")) return dir;
  if (const char* cache = std::getenv("DUNLIN_CACHE")) return std::string(cache) + "/models";
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) {
    return std::string(cache) + "/dunlin/models";
  }
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "." : home) + "/.cache/dunlin/models";
}

std::unique_ptr<Model> load(const std::string& path, Isa isa, DType kv_dtype) {
  const auto file = GgufFile::open(path);
  if (!file) throw std::runtime_error(file.error().message());
  const auto config = config_from_gguf(**file);
  if (!config) throw std::runtime_error(config.error().message());
  const auto source = GgufWeightSource::create(*file);
  if (!source) throw std::runtime_error(source.error().message());
  LoadOptions options;
  options.isa = isa;
  options.kv_dtype = kv_dtype;
  auto model = load_model(**source, *config, options);
  if (!model) throw std::runtime_error(model.error().message());
  return std::move(*model);
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

void print(const RealModel& model, std::string_view path, std::size_t i, const Distance& d) {
  std::printf(
      "%-12s %-13s case %zu: top 10 mean %.5f max %.5f, prompt mean %.5f max %.5f, greedy %s\n",
      model.golden, std::string(path).c_str(), i, d.top_mean, d.top_max, d.prompt_mean,
      d.prompt_max,
      d.left_at_margin ? ("differs, largest margin " + std::to_string(*d.left_at_margin)).c_str()
                       : "equal");
}

class RealModelTest : public ::testing::TestWithParam<RealModel> {
 protected:
  void SetUp() override {
    path_ = models_dir() + "/" + GetParam().file;
    if (!std::filesystem::exists(path_)) {
      GTEST_SKIP() << "the model is not here: " << path_ << " (dunlin pull fetches it)";
    }
    prompts_ = load_prompts(GetParam());
    ASSERT_EQ(prompts_.size(), 5u);
  }
  std::string path_;
  std::vector<Prompt> prompts_;
};

TEST_P(RealModelTest, reference_path_gives_the_golden_log_probabilities) {
  const std::unique_ptr<Model> model = load(path_, Isa::kReference, DType::kF32);
  for (std::size_t i = 0; i < prompts_.size(); ++i) {
    const Distance d = measure(*model, prompts_[i]);
    print(GetParam(), "reference", i, d);
    EXPECT_LE(d.top_mean, 0.005) << i;
    EXPECT_LE(d.top_max, 0.02) << i;
    EXPECT_LE(d.prompt_mean, 0.005) << i;
    EXPECT_LE(d.prompt_max, 0.02) << i;
    EXPECT_LT(d.left_at_margin.value_or(0), kMargin) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, RealModelTest, ::testing::ValuesIn(kModels),
                         [](const auto& param_info) {
                           std::string name = param_info.param.golden;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace dunlin
