// Rotary position embedding (Su et al., "RoFormer", 2021). Pair j of a head is turned by the angle
// position * inv_freq[j]. Long-context variants (linear, NTK, YaRN, Llama 3) differ only in the
// frequencies and one factor on cosine and sine, so they are other ways to fill RopeFrequencies.
//
// The same plain loops serve every instruction set, so rotated values are equal bit for bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpu/thread_pool.h"

namespace dunlin {

enum class RopeStyle {
  kRotateHalf,   // pair j is (x[j], x[j + rope_dim / 2]): GPT-NeoX, Hugging Face's llama
  kInterleaved,  // pair j is (x[2j], x[2j + 1]): the paper, GPT-J
};

struct RopeFrequencies {
  std::vector<double> inv_freq;   // [rope_dim / 2] radians a position
  double attention_factor = 1.0;  // multiplies cosine and sine
  int rope_dim() const { return 2 * static_cast<int>(inv_freq.size()); }
};

// inv_freq[j] = base^(-2j / rope_dim).
RopeFrequencies rope_frequencies(int rope_dim, double base);

// Cosines and sines of a step's tokens, made once a step and shared by its layers: cos, sin
// [num_tokens, rope_dim / 2]. Angles are taken in double, so a position of 10^6 is as exact as 1.
void rope_table(ThreadPool& pool, const RopeFrequencies& frequencies,
                std::span<const std::int32_t> positions, float* cos, float* sin);

// Rotates the first rope_dim dimensions of each head of one token in place; the rest pass.
// x [num_heads, head_dim]; cos, sin [rope_dim / 2] of the token.
void apply_rope(RopeStyle style, const float* cos, const float* sin, int rope_dim, int num_heads,
                int head_dim, float* x);

}  // namespace dunlin
