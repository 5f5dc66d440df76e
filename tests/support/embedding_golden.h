// Texts and the vectors that a reference gives for them (tools/make_embedding_golden.py).
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "frontend/embedding.h"
#include "frontend/session.h"

namespace dunlin::testing {

struct Golden {
  std::string text;
  std::vector<TokenId> ids;
  std::vector<float> embedding;
};

inline std::vector<Golden> tiny_golden() {
  std::vector<Golden> all;
  for (const nlohmann::json& entry : nlohmann::json::parse(
           std::ifstream(DUNLIN_TEST_DATA_DIR "/embeddings/tiny-bert/reference.json")))
    all.push_back({entry["text"], entry["ids"], entry["embedding"]});
  return all;
}

inline std::vector<Golden> minilm_golden() {
  std::vector<Golden> all;
  std::ifstream file(DUNLIN_TEST_DATA_DIR "/embeddings/all-minilm-l6-v2.jsonl");
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json entry = nlohmann::json::parse(line);
    all.push_back({entry["text"], entry["ids"], entry["embedding"]});
  }
  return all;
}

inline double dot(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

inline double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  return dot(a, b) / std::sqrt(dot(a, a) * dot(b, b));
}

// All texts at once; the smallest cosine between a vector and the golden one.
inline double smallest_cosine(const std::string& folder, const std::vector<Golden>& golden,
                              std::string_view isa) {
  SessionConfig config;
  config.model_path = folder;
  config.model_name = "test";
  config.isa = isa;
  const auto session = Session::open(config, {});
  EXPECT_TRUE(session) << session.error().message();
  if (!session) return -1;
  EXPECT_TRUE((*session)->is_encoder());
  // The reference cuts its longest text.
  std::size_t longest = 0;
  for (const Golden& entry : golden) longest = std::max(longest, entry.ids.size());
  const int limit = static_cast<int>(longest);
  std::vector<std::vector<TokenId>> texts;
  for (const Golden& entry : golden) {
    texts.push_back((*session)->embedding_prompt(entry.text, true, limit));
    EXPECT_EQ(texts.back(), entry.ids) << entry.text;
  }
  EmbeddingJob job((*session)->engine(), texts, {});
  for (int i = 0; i < 200 && !job.finished(); ++i) job.wait(std::chrono::seconds(1));
  EXPECT_TRUE(job.finished() && !job.error());
  double smallest = 1;
  for (std::size_t i = 0; i < golden.size(); ++i) {
    EXPECT_NEAR(dot(job.vectors()[i], job.vectors()[i]), 1, 1e-5);
    smallest = std::min(smallest, cosine(job.vectors()[i], golden[i].embedding));
  }
  return smallest;
}

}  // namespace dunlin::testing
