// What h2o and snapkv keep, by a plain simulation of one attention head in float: where some tokens
// get most of the attention, keeping these gives outputs nearer to those of full attention than
// keeping as many of the newest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kv/kv_compaction.h"

namespace dunlin {
namespace {

constexpr int kDim = 16;
using Vector = std::vector<float>;

struct Token {
  Vector key, value, query;
};

// One token in `every` matters to all queries.
std::vector<Token> text(int num_tokens, int every) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<Token> tokens(static_cast<std::size_t>(num_tokens));
  for (int t = 0; t < num_tokens; ++t) {
    Token& token = tokens[static_cast<std::size_t>(t)];
    for (Vector* x : {&token.key, &token.value, &token.query})
      for (int d = 0; d < kDim; ++d) x->push_back(normal(random));
    token.query[0] = 2;
    token.key[0] = static_cast<int>(random() % static_cast<unsigned>(every)) == 0 ? 3.0f : -1.0f;
  }
  return tokens;
}

// Attention of `query` over slots; its weights.
Vector attend(const Vector& query, const std::vector<const Token*>& slots, Vector& out) {
  Vector weights;
  float sum = 0;
  for (const Token* token : slots) {
    float score = 0;
    for (std::size_t d = 0; d < kDim; ++d) score += query[d] * token->key[d];
    weights.push_back(std::exp(score / 2));
    sum += weights.back();
  }
  out.assign(kDim, 0);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    weights[i] /= sum;
    for (std::size_t d = 0; d < kDim; ++d) out[d] += weights[i] * slots[i]->value[d];
  }
  return weights;
}

// Outputs behind token `from` under a policy; `newest`: what moves is chosen by age instead.
std::vector<Vector> outputs(const std::vector<Token>& tokens, const KvPolicy& policy,
                            int num_prompt, int from, bool newest = false) {
  std::vector<const Token*> slots;
  Vector votes, out;
  std::vector<Vector> all;
  for (int t = 0; t < static_cast<int>(tokens.size()); ++t) {
    slots.push_back(&tokens[static_cast<std::size_t>(t)]);
    votes.push_back(0);
    const Vector weights = attend(slots.back()->query, slots, out);
    if (t >= from) all.push_back(out);
    if (t >= policy.first_vote(num_prompt) && t < policy.end_of_votes(num_prompt))
      for (std::size_t i = 0; i < votes.size(); ++i) votes[i] += weights[i];
    const KvCompaction compaction = policy.compaction(t + 1, num_prompt);
    if (compaction.is_none()) continue;
    if (newest)
      for (std::size_t i = 0; i < votes.size(); ++i) votes[i] = static_cast<float>(i);
    KvCompactionScratch scratch;
    std::size_t to = 0;
    for (const std::int32_t slot : choose_slots(compaction, votes, scratch)) {
      slots[to] = slots[static_cast<std::size_t>(slot)];
      votes[to++] = votes[static_cast<std::size_t>(slot)];
    }
    slots.erase(slots.begin() + compaction.to, slots.begin() + compaction.from);
    votes.erase(votes.begin() + compaction.to, votes.begin() + compaction.from);
  }
  return all;
}

double distance(const std::vector<Vector>& a, const std::vector<Vector>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t d = 0; d < kDim; ++d) sum += (a[i][d] - b[i][d]) * (a[i][d] - b[i][d]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

TEST(HeavyHitters, AreNearerToFullAttentionThanTheNewest) {
  const std::vector<Token> tokens = text(800, 12);
  for (const KvPolicy& policy :
       {KvPolicy{.type = KvPolicyType::kH2o, .budget = 160},
        KvPolicy{.type = KvPolicyType::kH2o, .budget = 256},
        KvPolicy{.type = KvPolicyType::kSnapKv, .budget = 160, .pool = 1}}) {
    for (const int num_prompt : {100, 500}) {
      if (policy.type == KvPolicyType::kSnapKv && num_prompt == 100) continue;
      const auto full = outputs(tokens, {}, num_prompt, 500);
      const double heavy = distance(outputs(tokens, policy, num_prompt, 500), full);
      const double recent = distance(outputs(tokens, policy, num_prompt, 500, true), full);
      EXPECT_LT(heavy, 0.7 * recent) << to_string(policy) << " " << num_prompt;
      EXPECT_GT(heavy, 0);
    }
  }
}

}  // namespace
}  // namespace dunlin
