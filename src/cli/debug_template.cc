#include "cli/debug_template.h"

#include <CLI/CLI.hpp>
#include <cmath>
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

// "now" of a request: seconds since 1970, or a date and time of the machine's clock, as
// datetime.isoformat() writes it; without it the clock's.
Result<std::time_t> moment_of(const Json& request) {
  const auto now = request.find("now");
  if (now == request.end() || now->is_null()) return std::time(nullptr);
  if (now->is_number() && std::abs(now->get<double>()) < 1e15)
    return static_cast<std::time_t>(std::floor(now->get<double>()));
  for (const char* format : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d"}) {
    std::tm parts{};
    parts.tm_isdst = -1;
    if (!now->is_string()) break;
    const char* end = strptime(now->get_ref<const std::string&>().c_str(), format, &parts);
    if (end != nullptr && *end == '\0') return std::mktime(&parts);
  }
  return invalid("\"now\" must be seconds since 1970 or a text like 2026-01-31T12:00:00");
}

Result<std::vector<OwnedSegment>> render(const Json& request) {
  const auto source = request.find("template");
  if (source == request.end() || !source->is_string())
    return invalid("\"template\" must be a text");
  DUNLIN_ASSIGN(now, moment_of(request));
  DUNLIN_ASSIGN(parsed, ChatTemplate::parse(source->get_ref<const std::string&>()));
  return parsed.render(request.value("vars", Json::object()), now);
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
