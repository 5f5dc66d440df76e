// A real Session over a scripted engine and a tokenizer of bytes.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "frontend/session.h"
#include "support/fake_engine.h"
#include "support/fake_tokenizer.h"
#include "text/chat_template.h"

namespace dunlin {

inline constexpr const char* kFakeTemplate =
    "<|bos|>{% for m in messages %}{{ m.role }}: {{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}";

struct FakeSession {
  explicit FakeSession(FakeScript script, const char* chat_template = kFakeTemplate,
                       EngineConfig config = FakeEngine::default_config()) {
    SessionParts parts;
    parts.config.model_name = "fake";
    parts.tokenizer = std::make_unique<FakeTokenizer>();
    if (chat_template != nullptr) {
      auto parsed = ChatTemplate::parse(chat_template);
      DUNLIN_CHECK(parsed.has_value(), "the test's template is broken");
      parts.chat_template = std::make_unique<ChatTemplate>(std::move(*parsed));
    }
    auto owned = std::make_unique<FakeEngine>(std::move(script), config);
    engine = owned.get();
    parts.engine = std::move(owned);
    session = assemble_session(std::move(parts));
  }

  std::unique_ptr<Session> session;
  FakeEngine* engine = nullptr;
};

}  // namespace dunlin
