// One opened model, ready to serve text: tokenizer, chat template, engine. Opened once by the
// command; used by the server and the terminal chat alike.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "dunlin/status.h"
#include "engine/engine.h"
#include "engine/memory_plan.h"
#include "frontend/types.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace dunlin {

struct SessionConfig {
  std::string model_path;
  std::string model_name;  // what /v1/models and answers call it
  int num_threads = 0;     // 0: all cores this process may use
  std::string isa = "auto";
  KvFormats kv_formats;       // how keys and values are cached
  std::string quantize;       // a QuantRecipe's name; "": weights as stored
  std::string chat_template;  // overrides the model's; "" keeps it
  // Where a request says nothing. open() puts the model's own recommendation here, if there is one.
  SamplingParams sampling;
  bool model_recommends_sampling = false;
  EngineConfig engine;
  // All that the process may take of memory. 0: what is free, less a margin (memory_budget()).
  // open() gives the KV cache what weights and scratch leave, unless engine.kv_bytes says how much.
  std::int64_t memory_bytes = 0;
};

// A running generation of one or more choices. Destroying it cancels. One reader at a time;
// cancel() may be called from any thread. poll/wait and on_ready are two ways of reading: use one.
class Generation {
 public:
  virtual ~Generation() = default;
  virtual std::optional<TextDelta> poll() = 0;  // never waits
  virtual std::optional<TextDelta> wait(std::chrono::milliseconds timeout) = 0;
  virtual void on_ready(std::function<void()> notify) = 0;  // from the engine thread; be quick
  virtual bool finished() const = 0;                        // every choice has told its finish
  virtual void cancel() = 0;  // what is left finishes with FinishReason::kCancelled
  virtual int num_prompt_tokens() const = 0;
};

class Session {
 public:
  virtual ~Session() = default;

  // Opens the model: maps and checks the file, packs weights, starts the engine.
  // `progress` (may be empty) is told what is going on: a phrase and a fraction in [0, 1].
  static Result<std::unique_ptr<Session>> open(
      const SessionConfig& config,
      const std::function<void(std::string_view phase, double fraction)>& progress);

  // Messages as the template wants them: [{"role":..., "content":...}, ...]; `extra` holds further
  // template variables (tools, chat_template_kwargs). What messages say never becomes a control
  // token. Ids of any length: whether they fit the context is for the caller or generate() to see.
  // kInvalidArgument: no template, or the template refuses, in its own words. Thread-safe.
  Result<std::vector<TokenId>> chat_prompt(const nlohmann::ordered_json& messages,
                                           const nlohmann::ordered_json& extra,
                                           bool add_generation_prompt) const {
    DUNLIN_ASSIGN(text, chat_text(messages, extra, add_generation_prompt));
    return encode(text);
  }
  // The same in two steps: what the template makes of the messages, and its tokens.
  virtual Result<std::vector<OwnedSegment>> chat_text(const nlohmann::ordered_json& messages,
                                                      const nlohmann::ordered_json& extra,
                                                      bool add_generation_prompt) const = 0;
  virtual std::vector<TokenId> encode(const std::vector<OwnedSegment>& text) const = 0;
  // A raw prompt; special text in it is plain text. The model's prefix (BOS) is added. Thread-safe.
  virtual Result<std::vector<TokenId>> completion_prompt(std::string_view text) const = 0;

  // A text to embed; special text in it is plain text. with_special: with what the model wants in
  // front and behind. max_tokens: 0, or the text's end is left out so that all are no more.
  // Thread-safe.
  virtual std::vector<TokenId> embedding_prompt(std::string_view text, bool with_special,
                                                int max_tokens) const = 0;

  // Starts it. kInvalidArgument: an empty prompt, ids outside the vocabulary, wrong sampling
  // fields, or prompt + max_tokens that the context can't hold (with the numbers).
  // kResourceExhausted: too many wait already. kUnavailable: shutting down. Thread-safe. The
  // Generation must not outlive the Session.
  virtual Result<std::unique_ptr<Generation>> generate(std::vector<TokenId> prompt,
                                                       GenerationOptions options) = 0;

  virtual bool has_chat_template() const = 0;
  virtual const SessionConfig& config() const = 0;
  virtual int context_length() const = 0;  // tokens a sequence may hold here
  virtual const Tokenizer& tokenizer() const = 0;
  virtual const MemoryTable& memory() const = 0;  // as planned before anything was loaded
  virtual Engine& engine() = 0;
  // True where the model only gives embeddings.
  virtual bool is_encoder() const = 0;
};

// What to say where an encoder is asked for text.
std::string encoder_refusal(const Session& session);

// The parts a Session stands on, for open() and for tests.
struct SessionParts {
  SessionConfig config;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat_template;  // null: none
  std::unique_ptr<ChatTemplate> tool_template;  // for messages with tools; null: the same one
  std::unique_ptr<Engine> engine;
  MemoryTable memory;
};
std::unique_ptr<Session> assemble_session(SessionParts parts);

}  // namespace dunlin
