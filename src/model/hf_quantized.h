// The tensors of a folder as types that models here compute with, where config.json's
// quantization_config says that they are stored in others. Both kinds keep a second tensor with
// scales beside each quantised one:
//
//   fp8    NAME.weight (F8_E4M3) [out, in] and NAME.weight_scale_inv [out / block, in / block]:
//          DeepSeek-V3 and its kin; weight_block_size says the blocks. Becomes NAME.weight in BF16,
//          as DeepSeek's own converter makes it: eight bits of a product that has four and the
//          scale's.
//   mxfp4  NAME_blocks (U8) [..., in / 32, 16] and NAME_scales (U8) [..., in / 32]: GPT-OSS.
//   Four-bit
//          floats over a power of two for each 32 (OCP, "Microscaling formats (MX) specification",
//          2023). Becomes NAME_blocks in Q5_0 [..., in], which holds the same numbers: twice a
//          four-bit float is a whole number up to 12.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dunlin/status.h"
#include "formats/hf_config.h"
#include "formats/safetensors.h"
#include "model/lazy_tensor.h"

namespace dunlin {

struct HfTensor {
  std::string name;  // as stored
  std::string stored_type;
  bool readable = true;  // of a type and shape that a weight has
  LazyTensor tensor;
};

// Refuses other methods, tensors without their scales, and shapes that don't fit, by name.
Result<std::vector<HfTensor>> readable_tensors(const HfConfig& config, const Safetensors& stored);

// The number that a byte stands for: sign, four bits of exponent, three of mantissa; NaN for 0x7F.
float f8_e4m3_to_f32(std::uint8_t bits);

}  // namespace dunlin
