// Hostile and odd GGUF files, each with what must happen to it (manifest.jsonl): the whole check
// that `dunlin inspect` makes.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cases/manifest.h"
#include "frontend/file_facts.h"

namespace dunlin {
namespace {

const std::string kFolder = DUNLIN_TEST_DATA_DIR "/gguf_cases/";

class GgufCases : public testing::TestWithParam<Case> {};

TEST_P(GgufCases, EndsAsTheManifestSays) {
  const std::string path = kFolder + GetParam().name + ".gguf";
  ASSERT_TRUE(std::ifstream(path).good()) << path;
  const auto facts = check_file(path, std::nullopt, nullptr);
  if (GetParam().expect == "load") {
    EXPECT_TRUE(facts) << GetParam().why << ": " << facts.error().message();
  }
  if (GetParam().expect == "reject") {
    EXPECT_FALSE(facts) << GetParam().why;
  }
  if (!facts) {
    const std::string& message = facts.error().message();
    RecordProperty("message", message);
    EXPECT_TRUE(message.starts_with(kFolder)) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(, GgufCases, testing::ValuesIn(read_manifest(kFolder)),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace dunlin
