#include "eval/perplexity.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace dunlin::eval {
namespace {

// At half of a step's tokens each step can score as many as it computes for later.
constexpr int kMaxScoredTokens = 256;

}  // namespace

Result<Chunks> cut_into_chunks(const Tokenizer& tokenizer, std::string_view text, int context,
                               int max_chunks) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const std::span<const TokenId> prefix = tokenizer.prefix_ids();
  std::vector<TokenId> all(prefix.begin(), prefix.end());
  const std::vector<TokenId> ids = tokenizer.encode(text);
  all.insert(all.end(), ids.begin(), ids.end());
  Chunks chunks{context, context / 2 + 1, {}};
  auto num_chunks = all.size() / static_cast<std::size_t>(context);
  if (max_chunks > 0) num_chunks = std::min(num_chunks, static_cast<std::size_t>(max_chunks));
  if (num_chunks == 0) {
    return invalid(
        fmt::format("the text has {} tokens, but a chunk takes {}; give a longer text or "
                    "a smaller --context",
                    all.size(), context));
  }
  for (std::size_t i = 0; i < num_chunks; ++i) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(i) * context;
    chunks.ids.emplace_back(first, first + context);
    if (!prefix.empty()) chunks.ids.back()[0] = prefix[0];
  }
  return chunks;
}

EngineRequest scoring_request(const Chunks& chunks, int idx) {
  EngineRequest request;
  request.prompt = chunks.ids[static_cast<std::size_t>(idx)];
  request.echo_logprobs = true;
  request.echo_start = chunks.first_scored;
  request.num_policy_prompt_tokens = chunks.first_scored;
  request.sampling.num_logprobs = 0;
  request.sampling.max_tokens = 0;
  return request;
}

void configure_scoring(EngineConfig& engine, int context) {
  engine.max_context = context;
  engine.max_scored_tokens = kMaxScoredTokens;
}

Result<std::vector<Stretch>> measure_stretches(Engine& engine, const Tokenizer& tokenizer,
                                               std::string_view text, int num_tokens, int stretch,
                                               const Progress& progress) {
  DUNLIN_ASSIGN(chunks, cut_into_chunks(tokenizer, text, num_tokens, 1));
  chunks.first_scored = 1;
  EngineRequest request = scoring_request(chunks, 0);
  request.num_policy_prompt_tokens = 0;
  request.on_prompt_logits = [&](int position, std::span<const float>) {
    if (progress && (position % kMaxScoredTokens == 0 || position + 1 == num_tokens))
      progress(position + 1, num_tokens);
  };
  std::vector<Stretch> stretches;
  DUNLIN_TRY(run_requests(
      engine, 1, [&](int) { return request; },
      [&](int, const FinishedRequest& finished) {
        for (int begin = 0; begin < num_tokens; begin += stretch) {
          MeanSum nll;
          const int end = std::min(begin + stretch, num_tokens);
          for (int i = std::max(begin, 1); i < end; ++i)
            nll.add(-static_cast<double>(
                finished.prompt_logprobs[static_cast<std::size_t>(i)].logprob));
          stretches.push_back({begin, end, nll.mean()});
        }
      }));
  return stretches;
}

Result<Perplexity> measure_perplexity(Engine& engine, const Chunks& chunks,
                                      const Progress& progress) {
  MeanSum nll;
  const int num_chunks = static_cast<int>(chunks.ids.size());
  DUNLIN_TRY(run_requests(
      engine, num_chunks, [&](int idx) { return scoring_request(chunks, idx); },
      [&](int idx, FinishedRequest finished) {
        for (const TokenLogprobs& token :
             std::span(finished.prompt_logprobs)
                 .subspan(static_cast<std::size_t>(chunks.first_scored)))
          nll.add(-static_cast<double>(token.logprob));
        if (progress) progress(idx + 1, num_chunks);
      }));
  return Perplexity{num_chunks, nll.count(), nll.mean()};
}

}  // namespace dunlin::eval
