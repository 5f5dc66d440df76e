#include "text/chat_template.h"

#include <nlohmann/json.hpp>

#include "text/jinja/template.h"

namespace dunlin {
namespace {

// What a request brings along: everything but the two names that the session sets from the model,
// whatever the request says. A pattern such as "*_token" would let chat_template_kwargs in.
bool is_input(std::string_view variable) {
  return variable != "bos_token" && variable != "eos_token";
}

}  // namespace

struct ChatTemplate::Impl {
  jinja::Template parsed;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  DUNLIN_ASSIGN(parsed, jinja::Template::parse(source));
  return ChatTemplate(std::make_unique<Impl>(Impl{std::move(parsed)}));
}

Result<std::vector<OwnedSegment>> ChatTemplate::render(const nlohmann::ordered_json& vars,
                                                       long long now) const {
  DUNLIN_ASSIGN(rendered, impl_->parsed.render(vars, now, is_input));
  std::vector<OwnedSegment> segments;
  std::size_t at = 0;
  const auto add = [&](std::size_t end, bool trusted) {
    if (end > at) segments.push_back({rendered.text.substr(at, end - at), trusted});
    at = end;
  };
  for (const jinja::Span& span : rendered.input) {
    add(span.begin, true);
    add(span.end, false);
  }
  add(rendered.text.size(), true);
  return segments;
}

}  // namespace dunlin
