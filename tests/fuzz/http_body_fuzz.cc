// Request bodies of both endpoints: whatever they hold, parsing ends in a request or in an error
// that is valid JSON with a 4xx status.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <nlohmann/json.hpp>

#include "api/openai_parse.h"

namespace {

void check_error(const dunlin::ApiError& error) {
  const bool is_client_error = error.http_status >= 400 && error.http_status < 500;
  if (!is_client_error || error.message.empty()) std::abort();
  if (!nlohmann::json::accept(dunlin::error_body(error))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const dunlin::ParseContext context{"M", 1000};
  const auto chat = dunlin::parse_chat_request(body, context);
  if (!chat) {
    check_error(chat.error());
  } else if (!chat->messages || chat->messages->empty() || chat->options.n < 1) {
    std::abort();
  }
  const auto completion = dunlin::parse_completion_request(body, context);
  if (!completion) {
    check_error(completion.error());
  } else {
    if (completion->prompts.empty()) std::abort();
    for (const auto& prompt : completion->prompts) {
      for (const dunlin::TokenId id : prompt.ids) {
        if (id < 0 || id >= context.vocab_size) std::abort();
      }
    }
  }
  return 0;
}
