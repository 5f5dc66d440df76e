// Checks of a model against the reference.json of a small checkpoint: logits of Hugging Face
// transformers in float32 at some positions of `input_ids`, and the greedy text behind the
// first 48.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/convert.h"
#include "model/open_model.h"
#include "model/single_sequence.h"
#include "support/scratch_folder.h"

namespace dunlin::testing {

inline constexpr float kLogitTolerance = 2e-3f;  // of logits of size 1 to 5
inline constexpr double kGreedyMargin = 0.01;

inline nlohmann::json read_reference(const std::string& folder) {
  return nlohmann::json::parse(std::ifstream(folder + "/reference.json"));
}

inline std::vector<std::int32_t> reference_positions(const nlohmann::json& golden) {
  std::vector<std::int32_t> positions;
  for (const auto& [position, row] : golden["logits"].items())
    positions.push_back(std::stoi(position));
  std::sort(positions.begin(), positions.end());
  return positions;
}

inline void expect_reference_row(const nlohmann::json& golden, std::int32_t position,
                                 std::span<const float> row, std::string_view label) {
  const std::vector<float> want = golden["logits"][std::to_string(position)];
  ASSERT_EQ(row.size(), want.size()) << label;
  float worst = 0;
  for (std::size_t i = 0; i < row.size(); ++i) worst = std::max(worst, std::fabs(row[i] - want[i]));
  EXPECT_LE(worst, kLogitTolerance) << label << " at " << position;
}

// The prompt in pieces of 40.
inline void expect_reference_logits(Model& model, const nlohmann::json& golden,
                                    std::string_view label) {
  const std::vector<TokenId> ids = golden["input_ids"];
  SingleSequence sequence(model, 128, 40);
  std::size_t rows = 0;
  sequence.append(ids, reference_positions(golden),
                  [&](std::int32_t at, std::span<const float> row) {
                    expect_reference_row(golden, at, row, label);
                    ++rows;
                  });
  EXPECT_EQ(rows, golden["logits"].size());
}

// Steps [first, end) of the greedy text, token by token, where the reference was not in doubt.
inline void expect_reference_greedy(Model& model, const nlohmann::json& golden,
                                    std::string_view label, std::size_t first = 0,
                                    std::size_t end = 24) {
  std::vector<TokenId> ids = golden["input_ids"];
  ids.resize(48);
  const std::vector<TokenId> greedy = golden["greedy_from_first_48"];
  ids.insert(ids.end(), greedy.begin(), greedy.begin() + static_cast<std::ptrdiff_t>(first));
  SingleSequence sequence(model, 128, 72);
  std::span<const float> row = sequence.append(ids);
  const std::vector<double> margins = golden["greedy_margins"];
  for (std::size_t i = first; i < std::min(end, greedy.size()); ++i) {
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    if (margins[i] > kGreedyMargin) {
      EXPECT_EQ(best, greedy[i]) << label << " step " << i;
    }
    row = sequence.append({&greedy[i], 1});
  }
}

// Another sequence decodes token by token and a third runs ahead in pieces of 11, while the prompt
// comes in pieces of 23: its rows are the reference's, and bit for bit those of a run alone.
inline void expect_reference_in_a_batch(Model& model, const nlohmann::json& golden,
                                        std::string_view label) {
  const std::vector<TokenId> ids = golden["input_ids"];
  std::vector<std::vector<float>> alone;
  {
    SingleSequence sequence(model, 128, 128);
    sequence.append(ids, reference_positions(golden),
                    [&](std::int32_t, std::span<const float> row) {
                      alone.emplace_back(row.begin(), row.end());
                    });
  }
  std::vector<TokenId> other(ids.rbegin(), ids.rend());
  SequenceSet set(model, 3, 128, 64, 8);
  const std::vector<std::int32_t> positions = reference_positions(golden);
  const auto vocab = static_cast<std::size_t>(model.limits().vocab_size);
  std::size_t next = 0;
  const auto all = std::span<const TokenId>(ids);
  const auto back = std::span<const TokenId>(other);
  for (std::size_t step = 0; step * 23 < ids.size(); ++step) {
    const std::size_t begin = step * 23, size = std::min<std::size_t>(23, ids.size() - begin);
    std::vector<std::int32_t> wanted;
    for (const std::int32_t at : positions) {
      const auto position = static_cast<std::size_t>(at);
      if (position >= begin && position < begin + size)
        wanted.push_back(static_cast<std::int32_t>(position - begin));
    }
    const SequenceSet::Part parts[] = {{1, back.subspan(step, 1), {}},
                                       {0, all.subspan(begin, size), wanted},
                                       {2, back.subspan(step * 11, 11), {}}};
    const std::span<const float> rows = set.step(parts);
    for (std::size_t i = 0; i < wanted.size(); ++i, ++next) {
      const std::span<const float> row = rows.subspan(i * vocab, vocab);
      expect_reference_row(golden, positions[next], row, label);
      EXPECT_TRUE(std::equal(row.begin(), row.end(), alone[next].begin())) << label;
    }
  }
  EXPECT_EQ(next, positions.size());
}

// The path of what convert makes of a folder, in another.
inline std::string converted_to_gguf(const std::string& folder, const ScratchFolder& scratch) {
  const std::string path = scratch.path() + "/model.gguf";
  const auto checkpoint = HfCheckpoint::open(folder);
  EXPECT_TRUE(checkpoint) << checkpoint.error().message();
  if (!checkpoint) return path;
  const Outcome converted = convert_to_gguf(**checkpoint, path, {});
  EXPECT_TRUE(converted) << converted.error().message();
  return path;
}

// The folder converted to GGUF, loaded again.
inline void expect_reference_as_gguf(const std::string& folder, const nlohmann::json& golden) {
  const ScratchFolder scratch;
  const std::string path = converted_to_gguf(folder, scratch);
  LoadOptions options;
  options.kv_formats = KvFormat::kF32;
  const Result<OpenedModel> opened = open_model(path, options);
  ASSERT_TRUE(opened) << opened.error().message();
  expect_reference_logits(*opened->model, golden, "gguf");
}

}  // namespace dunlin::testing
