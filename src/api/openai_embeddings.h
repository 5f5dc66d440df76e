// Bodies and answers of /v1/embeddings, under OpenAI's field names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/api_error.h"
#include "api/openai_types.h"

namespace dunlin {

// As parse_chat_request (openai_parse.h).
ApiResult<EmbeddingRequest> parse_embedding_request(std::string_view body,
                                                    const ParseContext& context);

// One line of JSON. base64: the little-endian floats' bytes instead of numbers.
std::string format_embeddings(const std::string& model,
                              std::span<const std::vector<float>> embeddings, bool base64,
                              std::int64_t num_prompt_tokens);

}  // namespace dunlin
