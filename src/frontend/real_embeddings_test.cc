// all-MiniLM-L6-v2 (tools/fetch_minilm.py) against the vectors that sentence-transformers' recipe
// gives with it: mean of the hidden states, normalised.
#include "cpu/isa.h"
#include "support/embedding_golden.h"
#include "support/real_models.h"

namespace dunlin {
namespace {

TEST(RealEmbeddings, MiniLmIsTheReferences) {
  DUNLIN_REAL_MODEL_OR_SKIP(folder, "all-MiniLM-L6-v2");
  const std::vector<testing::Golden> golden = testing::minilm_golden();
  ASSERT_EQ(golden.size(), 8u);
  for (const Isa isa : {Isa::kReference, best_isa()}) {
    const double smallest = testing::smallest_cosine(folder, golden, isa_name(isa));
    EXPECT_GE(smallest, 0.9999) << isa_name(isa);
    RecordProperty(std::string(isa_name(isa)), std::to_string(smallest));
  }
}

}  // namespace
}  // namespace dunlin
