// Where the three real models lie that tests use when they are there: $DUNLIN_MODELS_DIR, else
// $DUNLIN_CACHE/models, else $XDG_CACHE_HOME/dunlin/models, else ~/.cache/dunlin/models.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace dunlin::support {

inline constexpr const char* kSmolLm2File = "SmolLM2-135M-Instruct.Q4_1.gguf";
inline constexpr const char* kQwenCoderFile = "Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf";
inline constexpr const char* kGemma3File = "gemma-3-270m.Q4_K_M.gguf";

inline std::filesystem::path real_models_folder() {
  namespace fs = std::filesystem;
  if (const char* folder = std::getenv("DUNLIN_MODELS_DIR")) return folder;
  if (const char* cache = std::getenv("DUNLIN_CACHE")) return fs::path(cache) / "models";
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) return fs::path(cache) / "dunlin/models";
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr ? home : ".") / ".cache/dunlin/models";
}

// "" where the file is not there: skip the test, saying so.
inline std::string real_model(const char* file) {
  const std::filesystem::path path = real_models_folder() / file;
  std::error_code error;
  return std::filesystem::exists(path, error) ? path.string() : std::string();
}

}  // namespace dunlin::support

// In a test: gives `var` the path, or skips with the reason.
#define DUNLIN_REAL_MODEL_OR_SKIP(var, file)                   \
  const std::string var = ::dunlin::support::real_model(file); \
  if (var.empty()) GTEST_SKIP() << file << " is not in " << ::dunlin::support::real_models_folder()
