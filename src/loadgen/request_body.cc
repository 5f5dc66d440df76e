#include "loadgen/request_body.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace dunlin::loadgen {

using nlohmann::ordered_json;

std::string request_body(const LoadRequest& request, const BodyOptions& options) {
  ordered_json body;
  if (!options.model.empty()) body["model"] = options.model;
  if (options.endpoint == Endpoint::kCompletions) {
    if (request.ids.empty()) {
      body["prompt"] = request.text;
    } else {
      body["prompt"] = request.ids;
    }
  } else if (!request.messages.empty()) {
    body["messages"] = ordered_json::parse(request.messages);
  } else {
    body["messages"] = {{{"role", "user"}, {"content", request.text}}};
  }
  body["max_tokens"] = request.max_tokens;
  body["temperature"] = options.temperature;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  if (options.ignore_eos) body["ignore_eos"] = true;
  if (!options.extra.empty()) body.update(ordered_json::parse(options.extra));
  return body.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Outcome check_form(const std::vector<LoadRequest>& requests, const BodyOptions& options) {
  if (!options.extra.empty()) {
    const auto extra = parse_json(options.extra);
    if (!extra) return tl::unexpected(extra.error().with_prefix("--extra-body"));
    if (!extra->is_object()) return invalid("--extra-body must be a JSON object");
  }
  const bool is_chat = options.endpoint == Endpoint::kChat;
  for (const LoadRequest& request : requests) {
    if (!is_chat && !request.messages.empty())
      return invalid("the dataset holds chat messages: add --endpoint chat");
    if (is_chat && !request.ids.empty())
      return invalid(
          "the dataset holds token ids, which chats don't take: use --endpoint "
          "completions");
  }
  return {};
}

}  // namespace dunlin::loadgen
