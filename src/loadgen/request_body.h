// Bodies of OpenAI's completions and chat completions.
#pragma once

#include <string>

#include "loadgen/workload.h"

namespace dunlin::loadgen {

enum class Endpoint { kCompletions, kChat };

struct BodyOptions {
  Endpoint endpoint = Endpoint::kCompletions;
  std::string model;  // "": not sent
  bool ignore_eos = false;
  double temperature = 0;
  std::string extra;  // a JSON object whose fields are added, "": none
};

// Streaming, with usage. Messages can't be sent to kCompletions, nor ids to kChat: see check_form.
std::string request_body(const LoadRequest& request, const BodyOptions& options);

// kInvalidArgument where the endpoint does not take what a request holds, or `extra` is no object.
Outcome check_form(const std::vector<LoadRequest>& requests, const BodyOptions& options);

}  // namespace dunlin::loadgen
