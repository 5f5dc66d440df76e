// Every architecture at sizes that are no round numbers (tests/golden/make_shapes.py): heads of 80,
// 96, 112 and 256, odd vocabularies, odd numbers of layers, heads and experts, windows that cut
// blocks. What holds for the checkpoints of tiny_golden_test must hold for these.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/open_model.h"
#include "support/reference_checks.h"
#include "support/sanitized.h"
#include "support/scratch_folder.h"
#include "support/seeded_checkpoint.h"

namespace dunlin {
namespace {

const std::string kFolder = DUNLIN_TEST_DATA_DIR "/shapes/";

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    all.push_back(entry.path().filename());
  std::sort(all.begin(), all.end());
  return all;
}

class ShapesGoldenTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { testing::write_seeded_checkpoint(kFolder + GetParam(), scratch_.path()); }

  const ScratchFolder scratch_;
  const nlohmann::json golden_ = testing::read_reference(kFolder + GetParam());
};

// A sanitizer's build takes the fastest alone: the others run there in tiny_golden_test.
TEST_P(ShapesGoldenTest, every_instruction_set_gives_the_reference) {
  for (const Isa isa : supported_isas()) {
    if (support::kIsSanitized && isa != best_isa()) continue;
    LoadOptions options;
    options.isa = isa;
    options.kv_formats = KvFormat::kF32;
    const Result<OpenedModel> opened = open_model(scratch_.path(), options);
    ASSERT_TRUE(opened) << opened.error().message();
    testing::expect_reference_logits(*opened->model, golden_, isa_name(isa));
    testing::expect_reference_in_a_batch(*opened->model, golden_, isa_name(isa));
    testing::expect_reference_greedy(*opened->model, golden_, isa_name(isa));
  }
}

TEST_P(ShapesGoldenTest, the_same_as_gguf) {
  testing::expect_reference_as_gguf(scratch_.path(), golden_);
}

INSTANTIATE_TEST_SUITE_P(All, ShapesGoldenTest, ::testing::ValuesIn(names()),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace dunlin
