// POST /v1/embeddings.
#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "api/api_call.h"
#include "api/openai_embeddings.h"
#include "frontend/embedding.h"

namespace dunlin {
namespace {

class EmbeddingCall final : public ApiCall {
 public:
  EmbeddingCall(Session& session, std::vector<std::vector<TokenId>> texts,
                const EmbeddingRequest& request)
      : model_(session.config().model_name),
        base64_(request.base64),
        job_(session.engine(), std::move(texts), request.options) {}

  bool is_streaming() const override { return false; }
  int num_choices() const override { return 0; }
  int max_tokens() const override { return 0; }
  void on_ready(std::function<void()> notify) override { job_.on_ready(std::move(notify)); }
  void cancel() override { job_.cancel(); }

  CallProgress advance() override {
    CallProgress progress;
    if (ended_) {
      progress.done = true;
      return progress;
    }
    job_.advance();
    if (!job_.finished()) return progress;
    ended_ = progress.done = true;
    if (job_.error())
      progress.error = api_error_from(*job_.error(), job_.ended_by());
    else
      progress.bytes = format_embeddings(model_, job_.vectors(), base64_, job_.num_prompt_tokens());
    return progress;
  }

 private:
  const std::string model_;
  const bool base64_;
  EmbeddingJob job_;
  bool ended_ = false;
};

std::string place_of(const EmbeddingRequest& request, std::size_t i) {
  return request.inputs.size() == 1 ? "input" : fmt::format("input[{}]", i);
}

// `num_tokens`: all, or at least so many where the text was not even turned into tokens.
ApiError length_error(const EmbeddingRequest& request, std::size_t i, std::int64_t num_tokens,
                      int context) {
  const PromptInput& input = request.inputs[i];
  return {
      400,
      fmt::format("{} has {}{} tokens, but the model's context holds {}; shorten it, or set "
                  "truncate_prompt_tokens",
                  place_of(request, i), input.ids.empty() ? "at least " : "", num_tokens, context),
      place_of(request, i), "context_length_exceeded"};
}

// The inputs' tokens, each within the context.
ApiResult<std::vector<std::vector<TokenId>>> tokens_of(const Session& session,
                                                       EmbeddingRequest& request) {
  const int context = session.context_length();
  const int limit =
      request.truncate_to == EmbeddingRequest::kToContext ? context : request.truncate_to;
  std::vector<std::vector<TokenId>> texts;
  std::size_t total = 0;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    PromptInput& input = request.inputs[i];
    const auto fewest =
        static_cast<std::int64_t>(input.is_ids ? 0 : session.tokenizer().fewest_tokens(input.text));
    if (limit == 0 && fewest > context) return api_fail(length_error(request, i, fewest, context));
    if (!input.is_ids)
      input.ids = session.embedding_prompt(input.text, request.add_special_tokens, limit);
    else if (limit > 0)
      input.ids.resize(std::min(input.ids.size(), static_cast<std::size_t>(limit)));
    const std::string place = place_of(request, i);
    if (input.ids.empty())
      return api_fail({400, place + " has no token that the model knows", place});
    if (input.ids.size() > static_cast<std::size_t>(context))
      return api_fail(length_error(request, i, std::ssize(input.ids), context));
    total += input.ids.size();
    if (total > kMaxEmbeddingTokens)
      return api_fail({400,
                       fmt::format("the inputs have more than {} tokens in all, {} of them up to "
                                   "{}; send them in several requests",
                                   kMaxEmbeddingTokens, total, place),
                       "input"});
    texts.push_back(std::move(input.ids));
  }
  return texts;
}

}  // namespace

ApiResult<std::unique_ptr<ApiCall>> start_embedding(Session& session, std::string_view body,
                                                    const CallOrigin& origin) {
  auto request = parse_embedding_request(body, ParseContext::of(session));
  if (!request) return api_fail(std::move(request).error());
  request->options.tenant = origin.tenant;
  auto texts = tokens_of(session, *request);
  if (!texts) return api_fail(std::move(texts).error());
  return std::make_unique<EmbeddingCall>(session, std::move(*texts), *request);
}

}  // namespace dunlin
