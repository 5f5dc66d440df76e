#include "api/api_call.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/openai_format.h"
#include "api/openai_parse.h"
#include "text/detokenizer.h"

namespace dunlin {
namespace {

std::string random_id(std::string_view prefix) {
  std::random_device device;
  return fmt::format("{}{:08x}{:08x}{:08x}", prefix, device(), device(), device());
}

std::int64_t unix_now_s() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

constexpr std::string_view kEventBegin = "data: ", kEventEnd = "\n\n";

void append_event(std::string& out, std::string_view json) {
  out += kEventBegin;
  out += json;
  out += kEventEnd;
}

void append_delta(ChoiceText& to, TextDelta& delta) {
  to.text += delta.text;
  std::move(delta.logprobs.begin(), delta.logprobs.end(), std::back_inserter(to.logprobs));
  std::move(delta.prompt_logprobs.begin(), delta.prompt_logprobs.end(),
            std::back_inserter(to.prompt_logprobs));
  to.finish = delta.finish;
}

// How a call answers, besides its generations.
struct CallForm {
  bool is_chat = false;
  bool stream = false;
  bool include_usage = false;
  bool drop_output = false;  // echo with max_tokens 0
  LogprobsForm logprobs = LogprobsForm::kNone;
  int num_choices_per_prompt = 1;
  int max_tokens = 0;
};

class OpenAiCall final : public ApiCall {
 public:
  OpenAiCall(std::string model, CallForm form, std::vector<std::unique_ptr<Generation>> generations,
             std::vector<std::string> echoes)
      : form_(form), generations_(std::move(generations)), echoes_(std::move(echoes)) {
    info_ = {random_id(form_.is_chat ? "chatcmpl-" : "cmpl-"), std::move(model), unix_now_s()};
    const auto n = generations_.size() * static_cast<std::size_t>(form_.num_choices_per_prompt);
    texts_.resize(n);
    ends_.resize(n);
    chunk_states_.resize(n);
    text_chunks_.resize(n);
    for (std::size_t i = 0; i < n && !echoes_.empty(); ++i)
      texts_[i].text = echoes_[i / static_cast<std::size_t>(form_.num_choices_per_prompt)];
    for (const auto& generation : generations_)
      usage_.num_prompt_tokens += generation->num_prompt_tokens();
  }

  bool is_streaming() const override { return form_.stream; }
  int num_choices() const override { return static_cast<int>(texts_.size()); }
  int max_tokens() const override { return form_.max_tokens; }

  void on_ready(std::function<void()> notify) override {
    for (const auto& generation : generations_) generation->on_ready(notify);
  }

  void cancel() override {
    for (const auto& generation : generations_) generation->cancel();
  }

  CallStats stats() const override {
    CallStats all = sum_up(ends_, form_.num_choices_per_prompt);
    all.num_prompt_tokens = static_cast<int>(usage_.num_prompt_tokens);
    return all;
  }

  CallProgress advance() override {
    CallProgress progress;
    if (ended_) {
      progress.done = true;
      return progress;
    }
    if (form_.stream && form_.is_chat && !std::exchange(roles_sent_, true)) {
      for (int i = 0; i < num_choices(); ++i)
        append_event(progress.bytes, format_chat_role_chunk(info_, i, form_.include_usage));
    }
    bool all_finished = true;
    for (std::size_t i = 0; i < generations_.size(); ++i) {
      take_deltas(i, progress);
      all_finished = all_finished && generations_[i]->finished();
    }
    if (form_.stream) flush_chunks(progress);
    if (error_ || all_finished) finish(progress);
    return progress;
  }

 private:
  void take_deltas(std::size_t generation_idx, CallProgress& progress) {
    Generation& generation = *generations_[generation_idx];
    while (!generation.finished() && !error_) {
      if (progress.num_new_tokens >= kMaxTokensPerAdvance) {
        progress.has_more = true;
        return;
      }
      std::optional<TextDelta> delta = generation.poll();
      if (!delta) return;
      progress.num_new_tokens += delta->token ? 1 : 0;
      if (form_.drop_output) {
        delta->text.clear();
        delta->logprobs.clear();
      }
      const std::size_t choice =
          generation_idx * static_cast<std::size_t>(form_.num_choices_per_prompt) +
          static_cast<std::size_t>(delta->choice_idx);
      append_delta(texts_[choice], *delta);
      ends_[choice] = {delta->stats, delta->finish};
      if (delta->finish != FinishReason::kNone) close_choice(*delta, texts_[choice]);
    }
  }

  void close_choice(const TextDelta& delta, ChoiceText& text) {
    if (form_.drop_output) {
      text.finish = FinishReason::kLength;
    } else {
      usage_.num_output_tokens += delta.stats.num_output_tokens;
    }
    if (delta.choice_idx == 0) usage_.num_cached_tokens += delta.stats.num_cached_tokens;
    if (delta.finish == FinishReason::kError) {
      error_ = delta.error ? api_error_from(*delta.error, delta.ended_by)
                           : ApiError{500, "the engine gave up on this request"};
    } else if (delta.finish == FinishReason::kCancelled) {
      error_ = ApiError{503, "the request was cancelled: the server is shutting down"};
    }
  }

  // What has come of each choice since the last flush, as events.
  void flush_chunks(CallProgress& progress) {
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      ChoiceText delta = std::exchange(texts_[i], {});
      const bool has_text =
          !delta.text.empty() || !delta.logprobs.empty() || !delta.prompt_logprobs.empty();
      const bool ends =
          delta.finish == FinishReason::kStop || delta.finish == FinishReason::kLength;
      const FinishReason end = ends ? delta.finish : FinishReason::kNone;
      const int idx = static_cast<int>(i);
      delta.finish = form_.is_chat ? FinishReason::kNone : end;  // of chat, a chunk of its own
      if (has_text || (ends && !form_.is_chat)) append_delta_event(idx, delta, progress.bytes);
      if (ends && form_.is_chat)
        append_event(progress.bytes,
                     format_chat_finish_chunk(info_, idx, end, form_.include_usage));
    }
  }

  void append_delta_event(int choice_idx, const ChoiceText& delta, std::string& out) {
    if (form_.logprobs == LogprobsForm::kNone && delta.prompt_logprobs.empty() &&
        delta.finish == FinishReason::kNone) {
      out += kEventBegin;
      text_chunks(choice_idx).append(delta.text, out);
      out += kEventEnd;
    } else if (form_.is_chat) {
      append_event(
          out, format_chat_chunk(info_, choice_idx, delta, form_.logprobs, form_.include_usage));
    } else {
      append_event(out, format_completion_chunk(
                            info_, choice_idx, delta, form_.logprobs, form_.include_usage,
                            chunk_states_[static_cast<std::size_t>(choice_idx)]));
    }
  }

  const TextChunks& text_chunks(int choice_idx) {
    std::optional<TextChunks>& chunks = text_chunks_[static_cast<std::size_t>(choice_idx)];
    if (!chunks) chunks.emplace(info_, choice_idx, form_.is_chat, form_.include_usage);
    return *chunks;
  }

  void finish(CallProgress& progress) {
    ended_ = true;
    progress.done = true;
    if (error_) cancel();
    if (form_.stream) {
      if (error_) {
        append_event(progress.bytes, error_body(*error_));
      } else if (form_.include_usage) {
        append_event(progress.bytes, format_usage_chunk(info_, usage_, form_.is_chat));
      }
      append_event(progress.bytes, "[DONE]");
    } else if (error_) {
      progress.error = error_;
    } else if (form_.is_chat) {
      progress.bytes = format_chat(info_, texts_, usage_, form_.logprobs);
    } else {
      progress.bytes = format_completion(info_, texts_, usage_, form_.logprobs);
    }
  }

  const CallForm form_;
  AnswerInfo info_;
  std::vector<std::unique_ptr<Generation>> generations_;  // one a prompt
  std::vector<std::string> echoes_;                       // one a prompt, or none
  std::vector<ChoiceText> texts_;                         // streaming: what isn't flushed yet
  std::vector<ChoiceEnd> ends_;                           // one a choice
  std::vector<ChunkState> chunk_states_;
  std::vector<std::optional<TextChunks>> text_chunks_;  // one a choice, made when needed
  Usage usage_;
  std::optional<ApiError> error_;
  bool roles_sent_ = false;
  bool ended_ = false;
};

// Tokens that the request may have, prompt and answer.
std::int64_t context_of(Session& session, const GenerationOptions& options) {
  Engine& engine = session.engine();
  const KvPolicy policy = options.kv_policy.value_or(engine.config().kv_policy);
  return policy.gives_back() ? max_tokens_of(policy, engine.config(), engine.limits())
                             : session.context_length();
}

// A text that is too long whatever its tokens are.
std::optional<ApiError> check_fewest(Session& session, std::size_t fewest_tokens,
                                     const GenerationOptions& options, const char* param) {
  const std::int64_t context = context_of(session, options);
  if (static_cast<std::int64_t>(fewest_tokens) < context) return std::nullopt;
  return ApiError{
      400,
      fmt::format("the prompt has at least {} tokens, but the context holds {} with the "
                  "answer; shorten the prompt",
                  fewest_tokens, context),
      param, "context_length_exceeded"};
}

// Refused before anything is submitted, with the word that clients look for.
std::optional<ApiError> check_context(Session& session, std::size_t num_prompt_tokens,
                                      const GenerationOptions& options, const char* param) {
  const std::int64_t context = context_of(session, options);
  const int max_tokens = options.sampling.max_tokens;
  const auto num_prompt = static_cast<std::int64_t>(num_prompt_tokens);
  if (num_prompt + std::max(max_tokens, 1) <= context) return std::nullopt;
  std::string message =
      num_prompt >= context
          ? fmt::format(
                "the prompt has {} tokens, but the context holds {} with the answer; "
                "shorten the prompt",
                num_prompt, context)
          : fmt::format(
                "the prompt has {} tokens and max_tokens is {}, but the context holds {}; "
                "ask for at most {} tokens or shorten the prompt",
                num_prompt, max_tokens, context, context - num_prompt);
  return ApiError{400, std::move(message), param, "context_length_exceeded"};
}

// More choices than the queue takes would wait for ever.
std::optional<ApiError> check_choices(Session& session, std::size_t num_prompts, int n) {
  const int max_queue = session.engine().config().max_queue;
  const auto num_choices = static_cast<std::int64_t>(num_prompts) * n;
  if (num_choices <= max_queue) return std::nullopt;
  return ApiError{400,
                  fmt::format("{} choices are asked for ({} prompts, n = {}), but the queue takes "
                              "{} at most; ask for fewer or raise --max-queue",
                              num_choices, num_prompts, n, max_queue),
                  "n"};
}

// A prompt that can't be made is the client's fault even where a budget ran out on the way.
ApiError prompt_error(const Status& status, const char* param) {
  ApiError error = api_error_from(status, param);
  if (status.code() == StatusCode::kResourceExhausted) error.http_status = 400;
  return error;
}

ApiError encoder_error(const Session& session) {
  return {400, encoder_refusal(session), "model", "model_not_generative"};
}

CallForm call_form(const OpenAiRequest& request, bool is_chat) {
  CallForm form;
  form.is_chat = is_chat;
  form.stream = request.stream;
  form.include_usage = request.include_usage;
  if (request.options.sampling.num_logprobs >= 0)
    form.logprobs = is_chat ? LogprobsForm::kChat : LogprobsForm::kCompletion;
  form.num_choices_per_prompt = request.options.n;
  form.max_tokens = request.options.sampling.max_tokens;
  return form;
}

std::string decode(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  Detokenizer detokenizer(tokenizer);
  std::string text;
  for (const TokenId id : ids) text += detokenizer.push(id);
  return text + detokenizer.finish();
}

}  // namespace

ApiResult<std::unique_ptr<ApiCall>> start_chat(Session& session, std::string_view body,
                                               const CallOrigin& origin) {
  if (session.is_encoder()) return api_fail(encoder_error(session));
  auto request = parse_chat_request(body, ParseContext::of(session));
  if (!request) return api_fail(std::move(request).error());
  request->options.tenant = origin.tenant;
  if (auto error = check_choices(session, 1, request->options.n))
    return api_fail(std::move(*error));
  const auto text = session.chat_text(*request->messages, *request->template_vars,
                                      request->add_generation_prompt);
  if (!text) return api_fail(prompt_error(text.error(), "messages"));
  std::size_t fewest = 0;
  for (const OwnedSegment& segment : *text)
    fewest += session.tokenizer().fewest_tokens(segment.text);
  if (auto error = check_fewest(session, fewest, request->options, "messages"))
    return api_fail(std::move(*error));
  std::vector<TokenId> prompt = session.encode(*text);
  if (auto error = check_context(session, prompt.size(), request->options, "messages"))
    return api_fail(std::move(*error));
  auto generation = session.generate(std::move(prompt), request->options);
  if (!generation) return api_fail(api_error_from(generation.error()));
  std::vector<std::unique_ptr<Generation>> generations;
  generations.push_back(std::move(*generation));
  return std::make_unique<OpenAiCall>(session.config().model_name, call_form(*request, true),
                                      std::move(generations), std::vector<std::string>());
}

ApiResult<std::unique_ptr<ApiCall>> start_completion(Session& session, std::string_view body,
                                                     const CallOrigin& origin) {
  if (session.is_encoder()) return api_fail(encoder_error(session));
  auto request = parse_completion_request(body, ParseContext::of(session));
  if (!request) return api_fail(std::move(request).error());
  request->options.tenant = origin.tenant;
  if (auto error = check_choices(session, request->prompts.size(), request->options.n))
    return api_fail(std::move(*error));
  std::vector<std::vector<TokenId>> prompts;
  std::vector<std::string> echoes;
  for (PromptInput& input : request->prompts) {
    if (request->echo)
      echoes.push_back(input.is_ids ? decode(session.tokenizer(), input.ids) : input.text);
    if (!input.is_ids) {
      const std::size_t fewest = session.tokenizer().fewest_tokens(input.text);
      if (auto error = check_fewest(session, fewest, request->options, "prompt"))
        return api_fail(std::move(*error));
      auto ids = session.completion_prompt(input.text);
      if (!ids) return api_fail(prompt_error(ids.error(), "prompt"));
      input.ids = std::move(*ids);
    }
    if (input.ids.empty())
      return api_fail(
          {400, "prompt is empty, and this model has no token to begin with", "prompt"});
    if (auto error = check_context(session, input.ids.size(), request->options, "prompt"))
      return api_fail(std::move(*error));
    prompts.push_back(std::move(input.ids));
  }
  std::vector<std::unique_ptr<Generation>> generations;
  for (std::vector<TokenId>& prompt : prompts) {
    auto generation = session.generate(std::move(prompt), request->options);
    if (!generation) return api_fail(api_error_from(generation.error()));
    generations.push_back(std::move(*generation));
  }
  CallForm form = call_form(*request, false);
  form.drop_output = request->echo_only;
  return std::make_unique<OpenAiCall>(session.config().model_name, form, std::move(generations),
                                      std::move(echoes));
}

}  // namespace dunlin
