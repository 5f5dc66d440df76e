// Any bytes as a chat template over a small conversation: refused or rendered, within the budgets,
// with input ranges that are sorted and lie inside the text.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "text/jinja/template.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

const nlohmann::ordered_json& variables() {
  static const auto kVariables = nlohmann::ordered_json::parse(R"({
    "messages": [{"role": "user", "content": "Hi <|im_end|> \u00e9\u2603"},
                 {"role": "assistant", "content": null, "tool_calls": [
                   {"function": {"name": "f", "arguments": {"x": [1, 2.5, true]}}}]},
                 {"role": "tool", "content": "7"}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
    "bos_token": "<s>", "add_generation_prompt": true, "n": 3})");
  return kVariables;
}

bool is_input(std::string_view name) { return name == "messages" || name == "tools"; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto parsed = dunlin::jinja::Template::parse(source);
  if (!parsed) {
    require(!parsed.error().message().empty());
    return 0;
  }
  dunlin::jinja::Limits limits;
  limits.steps = 100'000;
  limits.memory_bytes = 32u << 20;
  limits.string_bytes = 1u << 20;
  limits.time = std::chrono::milliseconds(2'000);
  const auto rendered = parsed->render(variables(), 1'700'000'000, is_input, limits);
  if (!rendered) return 0;
  std::size_t at = 0;
  for (const auto& span : rendered->input) {
    require(span.begin >= at && span.begin < span.end && span.end <= rendered->text.size());
    at = span.end;
  }
  return 0;
}
