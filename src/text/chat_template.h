// The model's own Jinja chat template: messages in, prompt segments out. Every character knows
// whether the template or the input wrote it (TextSegment::trusted).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "dunlin/status.h"

namespace dunlin {

struct OwnedSegment {
  std::string text;
  bool trusted = false;
};

class ChatTemplate {
 public:
  // kInvalidArgument with line and column where the source can't be parsed.
  static Result<ChatTemplate> parse(std::string_view source);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // Renders with `vars` (messages, tools, add_generation_prompt, bos_token, eos_token, ...).
  // bos_token and eos_token are the model's own words; the text of all others came with the
  // request and is input. `now` is the Unix time for strftime_now. kInvalidArgument with the
  // template's own words on raise_exception, with line and column on other errors;
  // kResourceExhausted past the budget of steps, output or time. Thread-safe.
  Result<std::vector<OwnedSegment>> render(const nlohmann::ordered_json& vars, long long now) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dunlin
