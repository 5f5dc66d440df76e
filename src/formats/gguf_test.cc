#include "formats/gguf.h"

#include <gtest/gtest.h>

namespace dunlin {
namespace {

TEST(GgufFile, NamesAFileThatIsMissing) {
  const auto file = GgufFile::open("/nonexistent/model.gguf");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace dunlin
