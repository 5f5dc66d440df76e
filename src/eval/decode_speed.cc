#include "eval/decode_speed.h"

#include <algorithm>
#include <vector>

#include "base/percentile.h"

namespace dunlin::eval {

Result<double> measure_decode_speed(Engine& engine, std::span<const TokenId> prompt,
                                    const DecodeOptions& options, const Progress& progress) {
  std::vector<double> speeds;
  for (int i = 0; i < options.num_repetitions; ++i) {
    const auto make = [&](int) {
      EngineRequest request;
      request.prompt.assign(prompt.begin(), prompt.end());
      request.sampling.temperature = 0;
      request.sampling.max_tokens = options.num_tokens + 1;
      request.sampling.ignore_eos = true;
      return request;
    };
    const auto done = [&](int, const FinishedRequest& finished) {
      const RequestStats& stats = finished.stats;
      speeds.push_back((stats.num_output_tokens - 1) /
                       (stats.total_time_s - stats.first_token_time_s));
    };
    DUNLIN_TRY(run_requests(engine, 1, make, done));
    if (progress) progress(i + 1, options.num_repetitions);
  }
  std::sort(speeds.begin(), speeds.end());
  return percentile(speeds, 50);
}

}  // namespace dunlin::eval
