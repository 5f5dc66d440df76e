#include "loadgen/answer_reader.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/quote.h"

namespace dunlin::loadgen {
namespace {

using nlohmann::json;

constexpr std::size_t kHeadBytes = 4096;
constexpr int kMaxTokens = 1 << 28;

// The server's own words in an error body, else its first bytes.
std::string error_text(std::string_view body) {
  const json error = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (error.is_object() && error.contains("error")) {
    const json& inner = error["error"];
    if (inner.is_string()) return quote_for_message(inner.get_ref<const std::string&>());
    if (inner.is_object() && inner.contains("message") && inner["message"].is_string())
      return quote_for_message(inner["message"].get_ref<const std::string&>());
  }
  return body.empty() ? "an empty answer" : quote_for_message(body.substr(0, 100));
}

int count(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return 0;
  const auto value = found->get<std::int64_t>();
  return value < 0 || value > kMaxTokens ? 0 : static_cast<int>(value);
}

bool has_text(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && !found->is_null() && !found->empty() &&
         !(found->is_string() && found->get_ref<const std::string&>().empty());
}

}  // namespace

const char* failure_name(Failure failure) {
  switch (failure) {
    case Failure::kNone: return "";
    case Failure::kConnect: return "no connection";
    case Failure::kTimeout: return "timeout";
    case Failure::kClosed: return "closed early";
    case Failure::kRefused: return "HTTP 429";
    case Failure::kHttpStatus: return "HTTP status";
    case Failure::kBadAnswer: return "bad answer";
    case Failure::kServerError: return "server error";
    case Failure::kInterrupted: return "interrupted";
    case Failure::kLeft: return "client left";
  }
  return "";
}

bool AnswerReader::push(int http_status, std::string_view bytes, double now_s) {
  if (head_.size() < kHeadBytes) head_ += bytes.substr(0, kHeadBytes - head_.size());
  if (http_status != 200) return head_.size() < kHeadBytes;
  if (!parser_.push(bytes, [&](std::string_view data) { take_event(data, now_s); }))
    fail(Failure::kBadAnswer, "an event of more than 4 MiB");
  return record_.is_ok();
}

void AnswerReader::finish(int http_status) {
  if (!record_.is_ok()) return;
  if (http_status == 429) {
    fail(Failure::kRefused, error_text(head_));
  } else if (http_status != 200) {
    fail(Failure::kHttpStatus, fmt::format("{}: {}", http_status, error_text(head_)));
  } else if (!has_event_) {
    fail(Failure::kBadAnswer, fmt::format("no event stream: {}", error_text(head_)));
  } else if (!is_done_) {
    fail(Failure::kClosed, "the stream ended without [DONE]");
  }
}

void AnswerReader::take_event(std::string_view data, double now_s) {
  has_event_ = true;
  if (!record_.is_ok()) return;
  if (data == "[DONE]") {
    is_done_ = true;
    return;
  }
  const json event = json::parse(data, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object())
    return fail(Failure::kBadAnswer, fmt::format("an event is no JSON object: {}",
                                                 quote_for_message(data.substr(0, 100))));
  if (has_text(event, "error")) return fail(Failure::kServerError, error_text(data));
  if (const auto usage = event.find("usage"); usage != event.end() && usage->is_object()) {
    record_.has_usage = true;
    record_.prompt_tokens = count(*usage, "prompt_tokens");
    record_.output_tokens = count(*usage, "completion_tokens");
    if (const auto details = usage->find("prompt_tokens_details");
        details != usage->end() && details->is_object())
      record_.cached_tokens = count(*details, "cached_tokens");
  }
  const auto choices = event.find("choices");
  if (choices == event.end() || !choices->is_array() || choices->empty()) return;
  const json& choice = (*choices)[0];
  if (!choice.is_object()) return fail(Failure::kBadAnswer, "a choice is no JSON object");
  bool brings_text = has_text(choice, "text");
  if (const auto delta = choice.find("delta"); delta != choice.end() && delta->is_object())
    brings_text = has_text(*delta, "content") || has_text(*delta, "reasoning_content") ||
                  has_text(*delta, "reasoning") || has_text(*delta, "tool_calls");
  const bool ends = has_text(choice, "finish_reason");
  is_done_ = is_done_ || ends;
  // A token of which no text can be shown yet is told by nobody; one that ends the answer may be.
  if (brings_text || (ends && record_.first_piece_s < 0)) note_piece(now_s);
}

void AnswerReader::note_piece(double now_s) {
  if (record_.first_piece_s < 0) {
    record_.first_piece_s = now_s;
  } else {
    record_.gaps_s.push_back(static_cast<float>(now_s - record_.last_piece_s));
  }
  record_.last_piece_s = now_s;
}

void AnswerReader::fail(Failure failure, std::string message) {
  if (!record_.is_ok()) return;
  record_.failure = failure;
  record_.message = std::move(message);
}

}  // namespace dunlin::loadgen
