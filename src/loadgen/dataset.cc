#include "loadgen/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/mapped_file.h"
#include "loadgen/random_draws.h"

namespace dunlin::loadgen {
namespace {

using nlohmann::json;

constexpr int kBytesPerToken = 4;
constexpr int kMaxTraceLen = 1 << 24;  // tokens

int reckoned_tokens(std::string_view text) {
  return static_cast<int>((text.size() + kBytesPerToken - 1) / kBytesPerToken);
}

// The objects of a JSON array one by one, so that a large file is never whole in memory.
class ArrayObjects {
 public:
  explicit ArrayObjects(std::string_view text) : text_(text) {}

  // The text of the next object of depth one; nullopt at the end.
  std::optional<std::string_view> next() {
    int depth = 0;
    bool in_string = false;
    std::size_t begin = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (in_string) {
        if (c == '\\') ++at_;
        in_string = c != '"';
      } else if (c == '"') {
        in_string = true;
      } else if (c == '{') {
        if (depth++ == 0) begin = at_;
      } else if (c == '}' && depth > 0 && --depth == 0) {
        ++at_;
        return text_.substr(begin, at_ - begin);
      }
    }
    return std::nullopt;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<LoadRequest> sharegpt_request(std::string_view text) {
  const auto entry = parse_json(text);
  if (!entry || !entry->contains("conversations")) return std::nullopt;
  const json& turns = (*entry)["conversations"];
  if (!turns.is_array() || turns.size() < 2) return std::nullopt;
  for (int i = 0; i < 2; ++i) {
    if (!turns[i].is_object() || !turns[i].contains("value") || !turns[i]["value"].is_string())
      return std::nullopt;
  }
  LoadRequest request;
  request.text = turns[0]["value"];
  request.prompt_len = reckoned_tokens(request.text);
  request.max_tokens = reckoned_tokens(turns[1]["value"].get_ref<const std::string&>());
  const bool is_usual = request.prompt_len >= 4 && request.max_tokens >= 4 &&
                        request.prompt_len <= 1024 &&
                        request.prompt_len + request.max_tokens <= 2048;
  return is_usual ? std::optional(std::move(request)) : std::nullopt;
}

// The first of two names that is there and a number in [0, most]; `otherwise` where neither is.
Result<double> number(const json& line, const char* name, const char* other, double most,
                      double otherwise) {
  for (const char* key : {name, other}) {
    if (!line.contains(key)) continue;
    const json& value = line[key];
    if (!value.is_number() || value.get<double>() < 0 || value.get<double>() > most)
      return invalid(fmt::format("\"{}\" must be a number from 0 to {:.0f}", key, most));
    return value.get<double>();
  }
  return otherwise;
}

Outcome read_prompt(const json& line, LoadRequest& request) {
  if (line.contains("messages")) {
    if (!line["messages"].is_array()) return invalid("\"messages\" must be an array");
    request.messages = line["messages"].dump();
    request.prompt_len = reckoned_tokens(request.messages);
    return {};
  }
  if (!line.contains("prompt")) {
    if (request.prompt_len == 0)
      return invalid("there is no \"prompt\", \"messages\" or \"prompt_len\"");
    return {};
  }
  const json& prompt = line["prompt"];
  if (prompt.is_string()) {
    request.text = prompt;
    request.prompt_len = reckoned_tokens(request.text);
  } else if (prompt.is_array() && std::all_of(prompt.begin(), prompt.end(), [](const json& id) {
               return id.is_number_unsigned();
             })) {
    request.ids = prompt.get<std::vector<TokenId>>();
    request.prompt_len = static_cast<int>(request.ids.size());
  } else {
    return invalid("\"prompt\" must be text or an array of token ids");
  }
  if (request.prompt_len == 0) return invalid("the prompt is empty");
  return {};
}

Result<LoadRequest> trace_request(std::string_view text) {
  DUNLIN_ASSIGN(line, parse_json(text));
  if (!line.is_object()) return invalid("is no JSON object");
  LoadRequest request;
  constexpr double kMostSeconds = 1e9;
  DUNLIN_ASSIGN(milliseconds, number(line, "timestamp", "timestamp", kMostSeconds * 1000, 0));
  DUNLIN_ASSIGN(seconds, number(line, "arrival_s", "arrival_s", kMostSeconds, milliseconds / 1000));
  DUNLIN_ASSIGN(prompt_len, number(line, "prompt_len", "input_length", kMaxTraceLen, 0));
  DUNLIN_ASSIGN(max_tokens, number(line, "max_tokens", "output_length", kMaxTraceLen, 0));
  request.arrival_s = seconds;
  request.prompt_len = static_cast<int>(prompt_len);
  request.max_tokens = static_cast<int>(max_tokens);
  DUNLIN_TRY(read_prompt(line, request));
  return request;
}

}  // namespace

Result<std::vector<LoadRequest>> read_sharegpt(const std::string& path, int count,
                                               std::uint64_t seed) {
  DUNLIN_ASSIGN(file, MappedFile::open(path));
  std::vector<LoadRequest> usable;
  ArrayObjects objects(file.text());
  while (const auto object = objects.next()) {
    if (auto request = sharegpt_request(*object)) usable.push_back(std::move(*request));
  }
  if (usable.empty())
    return invalid(
        fmt::format("{}: no conversation of two turns in it; ShareGPT's files are an "
                    "array of {{\"conversations\": [{{\"from\", \"value\"}}, ...]}}",
                    path));
  // Fisher and Yates.
  for (std::size_t i = usable.size() - 1; i > 0; --i)
    std::swap(usable[i], usable[static_cast<std::size_t>(
                             draw_between(seed, Draw::kShuffle, i, 0, static_cast<int>(i)))]);
  std::vector<LoadRequest> requests;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
    requests.push_back(usable[i % usable.size()]);
  return requests;
}

Result<std::vector<LoadRequest>> read_trace(const std::string& path, int count) {
  DUNLIN_ASSIGN(file, MappedFile::open(path));
  std::vector<LoadRequest> requests;
  std::string_view rest = file.text();
  for (int line = 1; !rest.empty() && requests.size() < static_cast<std::size_t>(count); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (text.find_first_not_of(" \t\r") == text.npos) continue;
    auto request = trace_request(text);
    if (!request)
      return tl::unexpected(request.error().with_prefix(fmt::format("{}: line {}", path, line)));
    requests.push_back(std::move(*request));
  }
  if (requests.empty()) return invalid(fmt::format("{}: there is no request in it", path));
  std::stable_sort(
      requests.begin(), requests.end(),
      [](const LoadRequest& a, const LoadRequest& b) { return a.arrival_s < b.arrival_s; });
  return requests;
}

}  // namespace dunlin::loadgen
