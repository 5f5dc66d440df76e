#include "api/openai_format.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/check.h"

namespace dunlin {
namespace {

using nlohmann::ordered_json;

std::string dump(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json finish_json(FinishReason finish) {
  if (finish == FinishReason::kNone) return nullptr;
  return finish_reason_name(finish);
}

ordered_json bytes_json(const std::string& bytes) {
  ordered_json out = ordered_json::array();
  for (const char byte : bytes) out.push_back(static_cast<unsigned char>(byte));
  return out;
}

ordered_json chat_logprobs(const std::vector<TokenLogprobText>& tokens) {
  ordered_json content = ordered_json::array();
  for (const TokenLogprobText& token : tokens) {
    ordered_json entry;
    entry["token"] = token.token;
    entry["logprob"] = token.logprob;
    entry["bytes"] = bytes_json(token.bytes);
    ordered_json top = ordered_json::array();
    for (const auto& alternative : token.top) {
      ordered_json row;
      row["token"] = alternative.token;
      row["logprob"] = alternative.logprob;
      row["bytes"] = bytes_json(alternative.bytes);
      top.push_back(std::move(row));
    }
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  ordered_json out;
  out["content"] = std::move(content);
  out["refusal"] = nullptr;
  return out;
}

// The k best by text, and the chosen token where it is none of them. Tokens of equal text (broken
// bytes) share a key: the likelier one stands.
ordered_json top_by_text(const TokenLogprobText& token) {
  ordered_json out = ordered_json::object();
  for (const auto& alternative : token.top) {
    if (!out.contains(alternative.token)) out[alternative.token] = alternative.logprob;
  }
  if (!out.contains(token.token)) out[token.token] = token.logprob;
  return out;
}

ordered_json completion_logprobs(const ChoiceText& choice, ChunkState& state) {
  ordered_json tokens = ordered_json::array();
  ordered_json logprobs = ordered_json::array();
  ordered_json top = ordered_json::array();
  ordered_json offsets = ordered_json::array();
  bool has_top = false;
  const auto add = [&](const TokenLogprobText& token, bool has_number) {
    tokens.push_back(token.token);
    logprobs.push_back(has_number ? ordered_json(token.logprob) : ordered_json(nullptr));
    top.push_back(has_number && !token.top.empty() ? top_by_text(token) : ordered_json(nullptr));
    has_top = has_top || !token.top.empty();
    offsets.push_back(state.num_chars);
    state.num_chars += token.num_chars;
  };
  for (std::size_t i = 0; i < choice.prompt_logprobs.size(); ++i)
    add(choice.prompt_logprobs[i], i > 0);
  for (const TokenLogprobText& token : choice.logprobs) add(token, true);
  ordered_json out;
  out["text_offset"] = std::move(offsets);
  out["token_logprobs"] = std::move(logprobs);
  out["tokens"] = std::move(tokens);
  out["top_logprobs"] = has_top ? std::move(top) : ordered_json(nullptr);
  return out;
}

ordered_json usage_json(const Usage& usage) {
  ordered_json details;
  details["cached_tokens"] = usage.num_cached_tokens;
  ordered_json out;
  out["prompt_tokens"] = usage.num_prompt_tokens;
  out["completion_tokens"] = usage.num_output_tokens;
  out["total_tokens"] = usage.num_prompt_tokens + usage.num_output_tokens;
  out["prompt_tokens_details"] = std::move(details);
  return out;
}

ordered_json envelope(const AnswerInfo& info, const char* object) {
  ordered_json out;
  out["id"] = info.id;
  out["object"] = object;
  out["created"] = info.created_unix_s;
  out["model"] = info.model;
  return out;
}

std::string chunk(const AnswerInfo& info, const char* object, ordered_json choice,
                  bool with_usage) {
  ordered_json out = envelope(info, object);
  out["choices"] = ordered_json::array({std::move(choice)});
  if (with_usage) out["usage"] = nullptr;
  return dump(out);
}

constexpr const char* kChatChunk = "chat.completion.chunk";

std::string chat_chunk(const AnswerInfo& info, int choice_idx, ordered_json delta,
                       ordered_json logprobs, FinishReason finish, bool with_usage) {
  ordered_json choice;
  choice["index"] = choice_idx;
  choice["delta"] = std::move(delta);
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = finish_json(finish);
  return chunk(info, kChatChunk, std::move(choice), with_usage);
}

}  // namespace

std::string format_chat(const AnswerInfo& info, const std::vector<ChoiceText>& choices,
                        const Usage& usage, LogprobsForm logprobs) {
  ordered_json list = ordered_json::array();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    ordered_json message;
    message["role"] = "assistant";
    message["content"] = choices[i].text;
    message["refusal"] = nullptr;
    ordered_json choice;
    choice["index"] = i;
    choice["message"] = std::move(message);
    choice["logprobs"] = logprobs == LogprobsForm::kNone ? ordered_json(nullptr)
                                                         : chat_logprobs(choices[i].logprobs);
    choice["finish_reason"] = finish_json(choices[i].finish);
    list.push_back(std::move(choice));
  }
  ordered_json out = envelope(info, "chat.completion");
  out["choices"] = std::move(list);
  out["usage"] = usage_json(usage);
  return dump(out);
}

std::string format_completion(const AnswerInfo& info, const std::vector<ChoiceText>& choices,
                              const Usage& usage, LogprobsForm logprobs) {
  ordered_json list = ordered_json::array();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    ChunkState state;
    ordered_json choice;
    choice["index"] = i;
    choice["text"] = choices[i].text;
    choice["logprobs"] = logprobs == LogprobsForm::kNone ? ordered_json(nullptr)
                                                         : completion_logprobs(choices[i], state);
    choice["finish_reason"] = finish_json(choices[i].finish);
    list.push_back(std::move(choice));
  }
  ordered_json out = envelope(info, "text_completion");
  out["choices"] = std::move(list);
  out["usage"] = usage_json(usage);
  return dump(out);
}

std::string format_chat_role_chunk(const AnswerInfo& info, int choice_idx, bool with_usage) {
  ordered_json delta;
  delta["role"] = "assistant";
  delta["content"] = "";
  return chat_chunk(info, choice_idx, std::move(delta), nullptr, FinishReason::kNone, with_usage);
}

std::string format_chat_chunk(const AnswerInfo& info, int choice_idx, const ChoiceText& delta,
                              LogprobsForm logprobs, bool with_usage) {
  ordered_json content;
  content["content"] = delta.text;
  return chat_chunk(
      info, choice_idx, std::move(content),
      logprobs == LogprobsForm::kNone ? ordered_json(nullptr) : chat_logprobs(delta.logprobs),
      FinishReason::kNone, with_usage);
}

std::string format_chat_finish_chunk(const AnswerInfo& info, int choice_idx, FinishReason finish,
                                     bool with_usage) {
  return chat_chunk(info, choice_idx, ordered_json::object(), nullptr, finish, with_usage);
}

std::string format_completion_chunk(const AnswerInfo& info, int choice_idx, const ChoiceText& delta,
                                    LogprobsForm logprobs, bool with_usage, ChunkState& state) {
  ordered_json choice;
  choice["index"] = choice_idx;
  choice["text"] = delta.text;
  choice["logprobs"] =
      logprobs == LogprobsForm::kNone ? ordered_json(nullptr) : completion_logprobs(delta, state);
  choice["finish_reason"] = finish_json(delta.finish);
  return chunk(info, "text_completion", std::move(choice), with_usage);
}

// Inside of a JSON string a quote follows a backslash, so the empty text stands in one place only.
TextChunks::TextChunks(const AnswerInfo& info, int choice_idx, bool is_chat, bool with_usage) {
  constexpr std::string_view kChatText = R"("content":"")", kCompletionText = R"("text":"")";
  ChunkState state;
  const std::string chunk =
      is_chat
          ? format_chat_chunk(info, choice_idx, {}, LogprobsForm::kNone, with_usage)
          : format_completion_chunk(info, choice_idx, {}, LogprobsForm::kNone, with_usage, state);
  const std::string_view text = is_chat ? kChatText : kCompletionText;
  const std::size_t at = chunk.find(text);
  DUNLIN_CHECK(at != std::string::npos, "a chunk without text says so");
  const std::size_t end = at + text.size();
  before_ = chunk.substr(0, end - 1);
  after_ = chunk.substr(end - 1);
}

void TextChunks::append(std::string_view text, std::string& out) const {
  const auto stands_for_itself = [](char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
  };
  constexpr std::size_t kEventEnd = 2;  // what the caller adds
  out.reserve(out.size() + before_.size() + text.size() + after_.size() + kEventEnd);
  out += before_;
  if (std::all_of(text.begin(), text.end(), stands_for_itself)) {
    out += text;
  } else {
    const std::string quoted = dump(std::string(text));
    out.append(quoted, 1, quoted.size() - 2);
  }
  out += after_;
}

std::string format_usage_chunk(const AnswerInfo& info, const Usage& usage, bool is_chat) {
  ordered_json out = envelope(info, is_chat ? kChatChunk : "text_completion");
  out["choices"] = ordered_json::array();
  out["usage"] = usage_json(usage);
  return dump(out);
}

namespace {

ordered_json model_json(const ModelInfo& model) {
  ordered_json out;
  out["id"] = model.name;
  out["object"] = "model";
  out["created"] = model.created_unix_s;
  out["owned_by"] = "dunlin";
  out["max_model_len"] = model.context_length;
  return out;
}

}  // namespace

std::string format_model(const ModelInfo& model) { return dump(model_json(model)); }

std::string format_model_list(const ModelInfo& model) {
  ordered_json out;
  out["object"] = "list";
  out["data"] = ordered_json::array({model_json(model)});
  return dump(out);
}

}  // namespace dunlin
