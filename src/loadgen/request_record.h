// What became of one request.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dunlin::loadgen {

enum class Failure {
  kNone,
  kConnect,      // no connection
  kTimeout,      // it did not end in time
  kClosed,       // the server ended it early
  kRefused,      // 429: come back later
  kHttpStatus,   // any other status than 200
  kBadAnswer,    // what came is no stream of completions
  kServerError,  // an error told in the stream
  kInterrupted,  // Ctrl-C came before its end
  kLeft,         // this client left, as planned
};

// Stable words for reports and JSON: "connection", "timeout", "closed early", "429", ...
const char* failure_name(Failure failure);
inline constexpr int kNumFailures = static_cast<int>(Failure::kLeft) + 1;

struct RequestRecord {
  std::size_t index = 0;  // in the workload
  Failure failure = Failure::kNone;
  int http_status = 0;
  std::string message;  // why it failed
  double start_s = 0;   // when it was sent, since the start of the run
  // Since it was sent. A piece is what one event brought: usually one token.
  double first_piece_s = -1;  // -1: none came
  double last_piece_s = -1;
  double end_s = 0;
  std::vector<float> gaps_s;  // between pieces
  int prompt_tokens = 0;      // as the server counts, or as the workload reckons
  int cached_tokens = 0;
  int output_tokens = 0;  // as the server counts, or the pieces
  bool has_usage = false;

  bool is_ok() const { return failure == Failure::kNone; }
  int num_pieces() const { return first_piece_s < 0 ? 0 : static_cast<int>(gaps_s.size()) + 1; }
  // Mean time of a token after the first; -1 where there is none.
  double time_per_output_token_s() const {
    return output_tokens < 2 ? -1 : (last_piece_s - first_piece_s) / (output_tokens - 1);
  }
};

}  // namespace dunlin::loadgen
