// Numbers to their stored form in the cache and back, for the formats that no instruction set
// writes by itself (8 bits and fewer): the same code on every machine, so the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/kv_format.h"

namespace dunlin {

inline constexpr int kMostKvChannels = 1024;  // of a head in a code format

// FP8 of the Open Compute Project's specification (2023): e4m3 without infinities to +-448, e5m2 to
// +-57,344. To nearest even; what is beyond becomes the largest, NaN too.
std::uint8_t f32_to_fp8_e4m3(float x);
std::uint8_t f32_to_fp8_e5m2(float x);
float fp8_e4m3_to_f32(std::uint8_t bits);
float fp8_e5m2_to_f32(std::uint8_t bits);

// x [n], n a multiple of `rotation`: each `rotation` elements become their Hadamard transform times
// `factor`. Twice with factors 1 and 1 / rotation gives x.
void rotate_channels(float* x, std::int64_t n, int rotation, float factor);

// A token's keys or values x [num_heads, head_dim] to its place in a block's part. Of formats with
// at most 8 bits. Numbers beyond +-1e36 count as that in code formats.
void write_kv_keys(const KvPart& part, std::byte* first, int token, const float* x);
void write_kv_values(const KvPart& part, std::byte* first, int token, const float* x);

// A head of a block as floats, of every format and turned back: keys [head_dim, 16], values
// [16, head_dim]. For the reference, which computes with what the cache stands for.
void read_kv_keys(const KvPart& part, const std::byte* first, int head, float* keys);
void read_kv_values(const KvPart& part, const std::byte* first, int head, float* values);

}  // namespace dunlin
