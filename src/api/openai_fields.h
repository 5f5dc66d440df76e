// Parts of openai_parse: fields that both endpoints share, messages, and what isn't there yet.
#pragma once

#include <chrono>

#include "api/field_reader.h"
#include "api/openai_types.h"

namespace dunlin {

enum class OpenAiEndpoint { kChat, kCompletion };

// 404 through `fields` where another model is asked for.
ApiResult<void> check_model(FieldReader& fields, const ParseContext& context);

// Fields known elsewhere that change the answer, with any value that isn't neutral.
void refuse_unsupported(FieldReader& fields, OpenAiEndpoint endpoint);

// Sampling, stop, n, stream, seed, priority, timeouts. max_tokens is left to the caller.
void read_common(FieldReader& fields, const ParseContext& context, OpenAiRequest& out);

// "messages" and the template's variables.
void read_messages(FieldReader& fields, ChatRequest& out);
void read_template_vars(FieldReader& fields, ChatRequest& out);

// "cache_salt", where it is there.
void read_cache_salt(FieldReader& fields, std::string& out);
// "queue_timeout_ms" and "deadline_ms", where they are there.
void read_timeouts(FieldReader& fields, std::chrono::milliseconds& queue_timeout,
                   std::chrono::milliseconds& deadline);
// "kv_policy", where it is there: {"type": "window", "sinks": 4, "window": 1024}.
void read_kv_policy(FieldReader& fields, std::optional<KvPolicy>& out);

// The field `name` ("prompt", "input") in its four forms: a string, an array of at most max_inputs
// strings, token ids, an array of arrays of token ids.
void read_inputs(FieldReader& fields, const char* name, std::size_t max_inputs, int vocab_size,
                 std::vector<PromptInput>& out);

}  // namespace dunlin
