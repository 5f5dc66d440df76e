#include "frontend/session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "frontend/generation.h"

namespace dunlin {
namespace {

std::string special_text(const Tokenizer& tokenizer, TokenId id) {
  return id < 0 ? std::string() : tokenizer.token_bytes(id, true);
}

class SessionImpl final : public Session {
 public:
  explicit SessionImpl(SessionParts parts)
      : parts_(std::move(parts)),
        bos_text_(special_text(*parts_.tokenizer, parts_.tokenizer->bos_id())),
        eos_text_(special_text(*parts_.tokenizer, parts_.tokenizer->eos_id())) {}

  Result<std::vector<OwnedSegment>> chat_text(const nlohmann::ordered_json& messages,
                                              const nlohmann::ordered_json& extra,
                                              bool add_generation_prompt) const override {
    if (!parts_.chat_template) {
      return invalid(fmt::format(
          "{} has no chat template, so it can't take messages; use raw completion, or give a "
          "template with --chat-template",
          parts_.config.model_name));
    }
    nlohmann::ordered_json vars = extra.is_object() ? extra : nlohmann::ordered_json::object();
    vars["messages"] = messages;
    vars["add_generation_prompt"] = add_generation_prompt;
    vars["bos_token"] = bos_text_;
    vars["eos_token"] = eos_text_;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto tools = vars.find("tools");
    const bool with_tools = tools != vars.end() && !tools->empty();
    const ChatTemplate& chat_template =
        with_tools && parts_.tool_template ? *parts_.tool_template : *parts_.chat_template;
    auto text =
        chat_template.render(vars, std::chrono::duration_cast<std::chrono::seconds>(now).count());
    if (!text) return tl::unexpected(text.error().with_prefix("the chat template"));
    return text;
  }

  std::vector<TokenId> encode(const std::vector<OwnedSegment>& text) const override {
    std::vector<TextSegment> segments;
    segments.reserve(text.size());
    for (const OwnedSegment& segment : text) segments.push_back({segment.text, segment.trusted});
    return parts_.tokenizer->encode(segments);
  }

  Result<std::vector<TokenId>> completion_prompt(std::string_view text) const override {
    const auto prefix = parts_.tokenizer->prefix_ids();
    std::vector<TokenId> ids(prefix.begin(), prefix.end());
    const std::vector<TokenId> body = parts_.tokenizer->encode(text);
    ids.insert(ids.end(), body.begin(), body.end());
    return ids;
  }

  std::vector<TokenId> embedding_prompt(std::string_view text, bool with_special,
                                        int max_tokens) const override {
    std::vector<TokenId> ids = parts_.tokenizer->encode(text);
    const std::span<const TokenId> prefix = parts_.tokenizer->prefix_ids();
    const std::span<const TokenId> suffix = parts_.tokenizer->suffix_ids();
    const std::size_t num_special = with_special ? prefix.size() + suffix.size() : 0;
    const auto limit = static_cast<std::size_t>(max_tokens);
    if (limit > 0) ids.resize(std::min(ids.size(), limit - std::min(limit, num_special)));
    if (with_special) {
      ids.insert(ids.begin(), prefix.begin(), prefix.end());
      ids.insert(ids.end(), suffix.begin(), suffix.end());
    }
    if (limit > 0) ids.resize(std::min(ids.size(), limit));
    return ids;
  }

  Result<std::unique_ptr<Generation>> generate(std::vector<TokenId> prompt,
                                               GenerationOptions options) override {
    if (is_encoder()) return invalid(encoder_refusal(*this));
    const int num_prompt = static_cast<int>(prompt.size());
    const EngineConfig& engine = parts_.engine->config();
    const int context = max_tokens_of(options.kv_policy.value_or(engine.kv_policy), engine,
                                      parts_.engine->limits());
    if (num_prompt == 0) return invalid("the prompt is empty");
    if (num_prompt >= context) {
      return invalid(fmt::format(
          "the prompt has {} tokens, but the context holds {} and the answer needs at least one",
          num_prompt, context));
    }
    SamplingParams& sampling = options.sampling;
    if (sampling.max_tokens == 0) {
      // Where a policy lets the text go on behind the model's context, an answer still ends there,
      // or fills another one.
      const int rest = context_length() - num_prompt;
      sampling.max_tokens = std::min(rest > 0 ? rest : context_length(), context - num_prompt);
    } else if (sampling.max_tokens > context - num_prompt) {
      return invalid(fmt::format(
          "the prompt has {} tokens and max_tokens is {}, but the context holds {}; ask for at "
          "most {} tokens or shorten the prompt",
          num_prompt, sampling.max_tokens, context, context - num_prompt));
    }
    return start_generation(*parts_.engine, *parts_.tokenizer, std::move(prompt), options);
  }

  bool has_chat_template() const override { return parts_.chat_template != nullptr; }
  const SessionConfig& config() const override { return parts_.config; }
  int context_length() const override { return parts_.engine->config().max_context; }
  const Tokenizer& tokenizer() const override { return *parts_.tokenizer; }
  const MemoryTable& memory() const override { return parts_.memory; }
  Engine& engine() override { return *parts_.engine; }
  bool is_encoder() const override { return parts_.engine->limits().is_encoder; }

 private:
  SessionParts parts_;
  std::string bos_text_;
  std::string eos_text_;
};

}  // namespace

std::string encoder_refusal(const Session& session) {
  return fmt::format(
      "{} is an embedding model: it turns texts into vectors and writes no answers; use `dunlin "
      "embed` or POST /v1/embeddings, or another model for text",
      session.config().model_name);
}

std::unique_ptr<Session> assemble_session(SessionParts parts) {
  return std::make_unique<SessionImpl>(std::move(parts));
}

}  // namespace dunlin
