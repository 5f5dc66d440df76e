// Hostile and odd Hugging Face folders, each with what must happen to it (manifest.jsonl): opened,
// checked and packed as for use.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cases/manifest.h"
#include "model/open_model.h"

namespace dunlin {
namespace {

const std::string kFolder = DUNLIN_TEST_DATA_DIR "/safetensors_cases/";

class SafetensorsCases : public testing::TestWithParam<Case> {};

TEST_P(SafetensorsCases, EndsAsTheManifestSays) {
  const std::string folder = kFolder + GetParam().name;
  ASSERT_TRUE(std::filesystem::is_directory(folder)) << folder;
  const auto opened = open_model(folder, {});
  if (GetParam().expect == "load") {
    EXPECT_TRUE(opened) << GetParam().why << ": " << opened.error().message();
    return;
  }
  ASSERT_FALSE(opened) << GetParam().why;
  const std::string& message = opened.error().message();
  RecordProperty("message", message);
  EXPECT_TRUE(message.starts_with(folder)) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(, SafetensorsCases, testing::ValuesIn(read_manifest(kFolder)),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace dunlin
