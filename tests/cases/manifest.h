// A folder of collected cases: manifest.jsonl names each, what must happen to it, and why.
#pragma once

#include <fstream>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace dunlin {

struct Case {
  std::string name, expect, why;
};
inline std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

// `folder` ends with a slash.
inline std::vector<Case> read_manifest(const std::string& folder) {
  std::ifstream in(folder + "manifest.jsonl");
  std::vector<Case> cases;
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line);
    cases.push_back({json["name"], json["expect"], json["why"]});
  }
  return cases;
}

}  // namespace dunlin
