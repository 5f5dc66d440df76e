// The few types that every layer speaks: token ids, why a generation ended, counts.
#pragma once

#include <cstdint>
#include <string_view>

namespace dunlin {

using TokenId = std::int32_t;
using RequestId = std::uint64_t;  // unique within an engine's life; 0 is never given out

enum class FinishReason {
  kNone,       // still running
  kStop,       // an end-of-generation token, a stop token id or a stop string
  kLength,     // max_tokens or the context's end
  kCancelled,  // the client left or asked
  kError,      // the engine gave up; the output carries a Status
};

// OpenAI's words for it: "stop", "length", ...; "" for kNone.
std::string_view finish_reason_name(FinishReason reason);

}  // namespace dunlin
