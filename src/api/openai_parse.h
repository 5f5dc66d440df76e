// Bodies of /v1/chat/completions and /v1/completions to typed requests. Null is the same as
// absent, unknown fields are ignored, and a field that would change the answer but isn't there yet
// is refused by name. The only place that knows OpenAI's field names of requests.
#pragma once

#include <string_view>

#include "api/api_error.h"
#include "api/openai_types.h"

namespace dunlin {

// 400 with the field in `param`; 404 where "model" names another model than the one served.
ApiResult<ChatRequest> parse_chat_request(std::string_view body, const ParseContext& context);
ApiResult<CompletionRequest> parse_completion_request(std::string_view body,
                                                      const ParseContext& context);

}  // namespace dunlin
