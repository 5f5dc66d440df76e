// OpenAI's requests, typed: what is left of a body when every field has been checked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "dunlin/types.h"
#include "frontend/embedding.h"
#include "frontend/session.h"
#include "frontend/types.h"

namespace dunlin {

// What checks need to know of the model that serves.
struct ParseContext {
  std::string model_name;
  int vocab_size = 0;
  SamplingParams sampling{};  // where a request says nothing
  int hidden_size = 0;        // elements of an embedding

  static ParseContext of(Session& session);
};

struct OpenAiRequest {
  GenerationOptions options;
  bool stream = false;
  bool include_usage = false;  // stream_options.include_usage
};

struct ChatRequest : OpenAiRequest {
  // [{"role","content",...}], content always a string.
  std::shared_ptr<const nlohmann::ordered_json> messages;
  std::shared_ptr<const nlohmann::ordered_json> template_vars;  // an object, chat_template_kwargs
  bool add_generation_prompt = true;
};

struct PromptInput {
  std::string text;
  std::vector<TokenId> ids;
  bool is_ids = false;
};

struct CompletionRequest : OpenAiRequest {
  std::vector<PromptInput> prompts;  // at least one
  bool echo = false;                 // the prompt in front of each answer
  bool echo_only = false;            // max_tokens 0 with echo: nothing but the prompt
};

struct EmbeddingRequest {
  std::vector<PromptInput> inputs;  // at least one, none empty
  EmbeddingOptions options;
  bool base64 = false;             // else numbers
  bool add_special_tokens = true;  // to texts
  // Tokens that are kept of an input: from its front, kNotTruncated, or kToContext: as many as fit.
  int truncate_to = kNotTruncated;

  static constexpr int kNotTruncated = 0;
  static constexpr int kToContext = -1;
};

// As OpenAI's.
inline constexpr std::size_t kMaxEmbeddingInputs = 2048;
inline constexpr std::size_t kMaxEmbeddingTokens = 300'000;  // of all inputs

// All choices of a request: prompts x n.
inline constexpr int kMaxChoices = 128;
inline constexpr int kMaxTopLogprobs = 20;
inline constexpr int kMaxTimeoutMs = 7 * 24 * 3600 * 1000;
inline constexpr std::size_t kMaxMessages = 10'000;
inline constexpr std::size_t kMaxStopStrings = 16;
inline constexpr std::size_t kMaxStopBytes = 512;

}  // namespace dunlin
