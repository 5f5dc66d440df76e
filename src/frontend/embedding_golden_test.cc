// Texts to vectors through tokenizer, engine and pooling, of a tiny random BERT, against the
// reference's.
#include "support/embedding_golden.h"

#include "cpu/isa.h"

namespace dunlin {
namespace {

TEST(EmbeddingGolden, ATinyBertIsTheReferences) {
  const std::vector<testing::Golden> golden = testing::tiny_golden();
  ASSERT_GE(golden.size(), 5u);
  for (const Isa isa : supported_isas()) {
    const double smallest = testing::smallest_cosine(DUNLIN_TEST_DATA_DIR "/embeddings/tiny-bert",
                                                     golden, isa_name(isa));
    EXPECT_GE(smallest, 0.99999) << isa_name(isa);
  }
}

}  // namespace
}  // namespace dunlin
