#include <algorithm>
#include <cctype>
#include <initializer_list>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/openai_fields.h"
#include "base/quote.h"

namespace dunlin {
namespace {

using nlohmann::ordered_json;

// The parts' text, a line each; parts that are not text are refused.
std::string join_parts(FieldReader& message, const ordered_json& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string name = fmt::format("content[{}]", i);
    const ordered_json& part = parts[i];
    if (!part.is_object()) {
      message.fail(name, fmt::format("must be an object with a type, not {}", json_kind(part)));
      return {};
    }
    const auto type = part.find("type");
    if (type == part.end() || !type->is_string()) {
      message.fail(name, "needs a type");
      return {};
    }
    const bool is_refusal = *type == "refusal";
    if (*type != "text" && !is_refusal) {
      message.fail(name,
                   fmt::format("is of type {}, which is not supported yet; only text is",
                               quote_for_message(type->get<std::string>())),
                   "unsupported_content");
      return {};
    }
    const auto body = part.find(is_refusal ? "refusal" : "text");
    if (body == part.end() || !body->is_string()) {
      message.fail(name, fmt::format("needs a string \"{}\"", is_refusal ? "refusal" : "text"));
      return {};
    }
    if (i > 0) text += '\n';
    text += body->get<std::string>();
  }
  return text;
}

std::string read_content(FieldReader& message, const std::string& role) {
  const ordered_json* content = message.find("content");
  if (!content) {
    if (role != "assistant")
      message.fail("content", "is missing; it must be a string or an array of text parts");
    return {};
  }
  if (content->is_string()) return content->get<std::string>();
  if (content->is_array()) return join_parts(message, *content);
  message.fail("content", fmt::format("must be a string or an array of text parts, not {}",
                                      json_kind(*content)));
  return {};
}

ordered_json read_message(FieldReader& message) {
  std::string role;
  message.read("role", role);
  if (role.empty()) message.fail("role", "is missing");
  if (role == "developer") role = "system";
  const std::initializer_list<const char*> known = {"system", "user", "assistant", "tool"};
  if (std::find(known.begin(), known.end(), role) == known.end()) {
    message.fail("role", fmt::format("must be system, developer, user, assistant or tool, not {}",
                                     quote_for_message(role)));
  }
  for (const char* field : {"tool_calls", "function_call", "audio"}) {
    const ordered_json* value = message.find(field);
    if (value && !value->empty())
      message.fail(field, "is not supported yet; leave it out", "unsupported_parameter");
  }
  ordered_json out;
  out["role"] = role;
  out["content"] = read_content(message, role);
  for (const char* field : {"name", "tool_call_id"}) {
    std::string value;
    message.read(field, value);
    if (!value.empty()) out[field] = value;
  }
  return out;
}

// Text of template variables counts as the template's own words, so it must not be able to spell a
// control token.
bool is_safe_word(const ordered_json& value) {
  if (!value.is_string()) return !value.is_structured();
  const auto& text = value.get_ref<const std::string&>();
  return text.size() <= 64 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == ' ';
         });
}

}  // namespace

void read_messages(FieldReader& fields, ChatRequest& out) {
  const ordered_json* messages = fields.find("messages");
  if (!messages) return fields.fail("messages", "is missing; it must be an array of messages");
  if (!messages->is_array())
    return fields.fail("messages", fmt::format("must be an array, not {}", json_kind(*messages)));
  if (messages->empty()) return fields.fail("messages", "is empty; send at least one message");
  if (messages->size() > kMaxMessages)
    return fields.fail("messages", fmt::format("has {} entries; at most {} are taken",
                                               messages->size(), kMaxMessages));
  auto checked = std::make_shared<ordered_json>(ordered_json::array());
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const ordered_json& entry = (*messages)[i];
    const std::string where = fmt::format("messages[{}]", i);
    if (!entry.is_object())
      return fields.fail(where, fmt::format("must be an object, not {}", json_kind(entry)));
    FieldReader message(entry, where + ".");
    checked->push_back(read_message(message));
    if (message.error()) return fields.adopt(*message.error());
  }
  out.messages = std::move(checked);
}

void read_template_vars(FieldReader& fields, ChatRequest& out) {
  fields.read("add_generation_prompt", out.add_generation_prompt);
  auto vars = std::make_shared<ordered_json>(ordered_json::object());
  if (const ordered_json* given = fields.find("chat_template_kwargs")) {
    if (!given->is_object())
      return fields.fail("chat_template_kwargs",
                         fmt::format("must be an object, not {}", json_kind(*given)));
    for (const auto& [key, value] : given->items()) {
      for (const char* reserved :
           {"messages", "tools", "documents", "bos_token", "eos_token", "add_generation_prompt"}) {
        if (key == reserved)
          return fields.fail("chat_template_kwargs",
                             fmt::format("must not hold {}", quote_for_message(key)));
      }
      if (!is_safe_word(value))
        return fields.fail(
            "chat_template_kwargs",
            fmt::format("{} must be a boolean, a number or a word", quote_for_message(key)));
      (*vars)[key] = value;
    }
  }
  out.template_vars = std::move(vars);
}

}  // namespace dunlin
