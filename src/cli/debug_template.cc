#include "cli/debug_template.h"

#include <CLI/CLI.hpp>
#include <ctime>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands.h"
#include "text/chat_template.h"

namespace dunlin::cli {
namespace {

using Json = nlohmann::ordered_json;

Result<std::vector<OwnedSegment>> render(const Json& request) {
  const auto source = request.find("template");
  if (source == request.end() || !source->is_string())
    return invalid("\"template\" must be a text");
  const auto now = request.find("now");
  if (now != request.end() && !now->is_null() && !now->is_number_integer()) {
    return invalid("\"now\" must be a whole number of seconds since 1970");
  }
  DUNLIN_ASSIGN(parsed, ChatTemplate::parse(source->get_ref<const std::string&>()));
  const bool has_now = now != request.end() && !now->is_null();
  return parsed.render(request.value("vars", Json::object()),
                       has_now ? now->get<long long>() : std::time(nullptr));
}

Json answer(const Json& request, bool with_segments) {
  Json reply{{"id", request.is_object() && request.contains("id") ? request["id"] : Json()}};
  const auto rendered =
      request.is_object() ? render(request) : invalid("each line must be a JSON object");
  reply["ok"] = rendered.has_value();
  if (!rendered) {
    reply["error"] = rendered.error().message();
    return reply;
  }
  std::string text;
  Json segments = Json::array();
  for (const OwnedSegment& segment : *rendered) {
    text += segment.text;
    segments.push_back({segment.text, !segment.trusted});
  }
  reply["output"] = text;
  if (with_segments) reply["segments"] = std::move(segments);
  return reply;
}

}  // namespace

void debug_template(std::istream& in, std::ostream& out, bool segments) {
  for (std::string line; std::getline(in, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json request = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    out << answer(request, segments).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n'
        << std::flush;
  }
}

void add_debug_template(CLI::App& debug, Invocation& invocation) {
  auto segments = std::make_shared<bool>(false);
  CLI::App& command = *debug.add_subcommand("template", "Render chat templates from JSON lines");
  command.add_flag("--segments", *segments, "Also say which text came from the request");
  command.footer(
      "Example:\n"
      "  echo '{\"id\": 1, \"template\": \"Hello {{ name }}\", \"vars\": {\"name\": \"you\"}}' |\n"
      "    dunlin debug template");
  command.callback([segments, &invocation] {
    invocation.run = [segments] {
      debug_template(std::cin, std::cout, *segments);
      return 0;
    };
  });
}

}  // namespace dunlin::cli
