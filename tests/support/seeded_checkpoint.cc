#include "support/seeded_checkpoint.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

#include <nlohmann/json.hpp>

namespace dunlin::testing {
namespace {

std::vector<float> counter_values(std::uint64_t seed, std::size_t count, double centre,
                                  double amplitude) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t z = ((seed << 32) + i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    const double u = static_cast<double>(z >> 40) / (1 << 23) - 1.0;
    values[i] = static_cast<float>(centre + amplitude * u);
  }
  return values;
}

}  // namespace

void write_seeded_checkpoint(const std::string& from, const std::string& to) {
  std::filesystem::copy_file(from + "/config.json", to + "/config.json");
  const auto tensors = nlohmann::json::parse(std::ifstream(from + "/tensors.json"));
  nlohmann::json header;
  std::string bytes;
  for (const auto& tensor : tensors) {
    std::size_t count = 1;
    for (const std::size_t size : tensor.at("shape")) count *= size;
    const std::vector<float> values =
        counter_values(tensor.at("seed"), count, tensor.at("centre"), tensor.at("amplitude"));
    const std::size_t begin = bytes.size();
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    header[tensor.at("name").get<std::string>()] = {
        {"dtype", "F32"}, {"shape", tensor.at("shape")}, {"data_offsets", {begin, bytes.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = text.size();
  std::ofstream file(to + "/model.safetensors", std::ios::binary);
  file.write(reinterpret_cast<const char*>(&size), sizeof size);
  file << text << bytes;
}

}  // namespace dunlin::testing
