// One answer on standard output, as it comes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dunlin/status.h"
#include "frontend/session.h"
#include "frontend/types.h"

namespace dunlin::chat {

struct Answer {
  std::string text;
  std::vector<TokenId> tokens;  // of the text; none where a stop string cut through them
  FinishReason finish = FinishReason::kNone;
  RequestStats stats;
  int write_error = 0;  // errno of standard output, which ended the answer
};

// Streams the answer, and ends it by a line feed. `interrupted` is asked after each token, and
// every 50 ms besides; once it says true, the answer ends with FinishReason::kCancelled. On a
// terminal, control characters are shown as pictures; a file or pipe gets the text as it is.
Result<Answer> stream_answer(Session& session, std::vector<TokenId> prompt,
                             GenerationOptions options, const std::function<bool()>& interrupted);

// "first token 106 ms, 74.2 tokens/s; prompt 36 tokens, 32 cached; answer 21".
std::string describe_stats(const RequestStats& stats);

}  // namespace dunlin::chat
