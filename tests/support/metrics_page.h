// A page in Prometheus' text format, read for tests.
#pragma once

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace dunlin {

class MetricsPage {
 public:
  explicit MetricsPage(const std::string& text) {
    if (text.empty() || text.back() != '\n') note("the page does not end with a line");
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) read_line(line);
    for (const std::string& name : names()) check_family(name);
  }

  // The first thing that is wrong with the page; "" for a sound one.
  const std::string& problem() const { return problem_; }

  // Families, as TYPE lines name them.
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, type] : types_) out.push_back(name);
    return out;
  }
  bool has(const std::string& family) const { return types_.contains(family); }
  std::string type(const std::string& family) const { return types_.at(family); }

  // The labels of a family's samples but for "le"; empty where they differ between samples.
  std::set<std::string> label_names(const std::string& family) const {
    std::optional<std::set<std::string>> all;
    for (const Sample& sample : samples_) {
      if (family_of(sample.name) != family) continue;
      std::set<std::string> names;
      for (const auto& [label, value] : sample.labels)
        if (label != "le") names.insert(label);
      if (all && *all != names) return {};
      all = names;
    }
    return all.value_or(std::set<std::string>());
  }
  // The finite bucket limits of a histogram with one series, ascending as printed.
  std::vector<double> buckets(const std::string& family) const {
    std::vector<double> out;
    for (const Sample& sample : samples_) {
      if (sample.name != family + "_bucket") continue;
      const double bound = std::strtod(sample.labels.at("le").c_str(), nullptr);
      if (std::isfinite(bound)) out.push_back(bound);
    }
    return out;
  }
  // The first sample of that name, with that label where one is asked for; NaN: there is none.
  double value(const std::string& name, const std::string& label = "",
               const std::string& wanted = "") const {
    for (const Sample& sample : samples_) {
      if (sample.name != name) continue;
      const auto it = sample.labels.find(label);
      if (label.empty() || (it != sample.labels.end() && it->second == wanted)) return sample.value;
    }
    return std::nan("");
  }

 private:
  struct Sample {
    std::string name;
    std::map<std::string, std::string> labels;
    double value = 0;
  };

  void note(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }

  std::string family_of(const std::string& name) const {
    for (const char* end : {"_bucket", "_sum", "_count"}) {
      if (!name.ends_with(end)) continue;
      const std::string base = name.substr(0, name.size() - std::string(end).size());
      const auto it = types_.find(base);
      if (it != types_.end() && it->second == "histogram") return base;
    }
    return name;
  }

  void read_line(const std::string& line) {
    static const std::regex kHelp(R"(# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) [^\n]+)");
    static const std::regex kType(
        R"(# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|summary|untyped))");
    static const std::regex kSample(R"(([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+))");
    std::smatch match;
    if (std::regex_match(line, match, kHelp)) {
      if (!helped_.insert(match[1]).second) note("two HELP lines: " + line);
    } else if (std::regex_match(line, match, kType)) {
      if (!types_.emplace(match[1], match[2]).second) note("two TYPE lines: " + line);
    } else if (std::regex_match(line, match, kSample)) {
      add_sample(line, match);
    } else {
      note("neither a comment nor a sample: " + line);
    }
  }

  void add_sample(const std::string& line, const std::smatch& match) {
    Sample sample;
    sample.name = match[1];
    char* end = nullptr;
    const std::string value = match[3];
    sample.value = std::strtod(value.c_str(), &end);
    if (*end != '\0') note("no number: " + line);
    static const std::regex kLabel(R"re(([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)",?)re");
    const std::string labels = match[2];
    std::size_t read = 0;
    for (std::sregex_iterator it(labels.begin(), labels.end(), kLabel), none; it != none; ++it) {
      read += static_cast<std::size_t>(it->length());
      sample.labels[(*it)[1]] = (*it)[2];
    }
    if (read != labels.size()) note("broken labels: " + line);
    if (!types_.contains(family_of(sample.name))) note("a sample before its TYPE: " + line);
    for (const Sample& other : samples_)
      if (other.name == sample.name && other.labels == sample.labels) note("twice: " + line);
    samples_.push_back(std::move(sample));
  }

  void check_family(const std::string& family) {
    if (!helped_.contains(family)) note("no HELP: " + family);
    // Counters end in _total; so does a histogram of vLLM's.
    if (types_.at(family) == "counter" && !family.ends_with("_total")) note("no _total: " + family);
    if (types_.at(family) != "histogram") return;
    double last_bound = -INFINITY, last_count = 0;
    for (const Sample& sample : samples_) {
      if (sample.name != family + "_bucket") continue;
      const double bound = std::strtod(sample.labels.at("le").c_str(), nullptr);
      if (!(bound > last_bound) || sample.value < last_count) note("buckets fall: " + family);
      last_bound = bound;
      last_count = sample.value;
    }
    if (!std::isinf(last_bound) || value(family + "_count") != last_count)
      note("the last bucket is not all: " + family);
    if (std::isnan(value(family + "_sum"))) note("no sum: " + family);
  }

  std::string problem_;
  std::set<std::string> helped_;
  std::map<std::string, std::string> types_;
  std::vector<Sample> samples_;
};

}  // namespace dunlin
