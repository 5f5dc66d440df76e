#include "cli/bench_serve.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/quote.h"
#include "cli/commands.h"
#include "cli/load_flags.h"
#include "cli/progress.h"
#include "loadgen/load_driver.h"
#include "loadgen/report.h"
#include "loadgen/summary.h"
#include "net/file_limit.h"
#include "terminal/signal_pipe.h"

namespace dunlin::cli {
namespace {

using loadgen::Endpoint;
using loadgen::LoadRequest;

constexpr int kSpareFiles = 64;  // descriptors for everything but connections
constexpr int kInterruptedCode = 128 + SIGINT;

struct ServeBenchFlags {
  LoadFlags load;
  loadgen::LoadOptions options;
  std::string url = "http://127.0.0.1:8080";
  std::string endpoint = "completions";
  std::string prompt_format = "auto";
  int warmup = 1;
  double timeout_s = 600, connect_timeout_s = 20;
  std::vector<std::string> goodput;
  std::vector<double> percentiles{99};
  std::string output = "text";
  std::string save;
  bool with_records = false;
  bool quiet = false;
};

// The API's root, with /v1.
std::string api_root(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url.ends_with("/v1") ? url : url + "/v1";
}

HttpRequest simple_request(const std::string& url, const loadgen::LoadOptions& options,
                           std::string body) {
  HttpRequest request;
  request.url = url;
  request.body = std::move(body);
  request.bearer_token = options.api_key;
  request.connect_timeout = options.connect_timeout;
  request.timeout = options.timeout;
  return request;
}

// The name of the first model that the server lists; proves that it is there, too.
Result<std::string> first_model(HttpStreams& streams, const std::string& root,
                                const loadgen::LoadOptions& options) {
  auto answer = loadgen::ask(streams, simple_request(root + "/models", options, {}));
  if (!answer)
    return fail(answer.error().code(),
                fmt::format("{} does not answer ({}); start a server there (dunlin serve), or name "
                            "another with --url",
                            root, answer.error().message()));
  if (answer->status == 401 || answer->status == 403)
    return fail(StatusCode::kPermissionDenied,
                fmt::format("{} answers {}: it wants its key, --api-key", root, answer->status));
  const auto list = nlohmann::json::parse(answer->body, nullptr, false);
  if (list.is_object() && list.contains("data") && list["data"].is_array() &&
      !list["data"].empty()) {
    const auto& model = list["data"][0];
    if (model.is_object() && model.contains("id") && model["id"].is_string())
      return model["id"].get<std::string>();
  }
  return invalid(fmt::format("{}/models answers {} and lists no model; name one with --model", root,
                             answer->status));
}

// Whether the server takes prompts as token ids, and up to which: the vocabulary is not told, so an
// id that is refused is tried again smaller. nullopt: it does not.
Result<std::optional<TokenId>> last_token_id(HttpStreams& streams,
                                             const loadgen::LoadOptions& options) {
  for (const TokenId last : {19'999, 999, 255}) {
    LoadRequest request;
    request.ids = {last};
    request.max_tokens = 1;
    auto answer = loadgen::ask(
        streams, simple_request(options.url, options, request_body(request, options.body)));
    if (!answer) return tl::unexpected(answer.error().with_prefix(options.url));
    if (answer->status == 200) return last;
  }
  return std::nullopt;
}

Outcome choose_prompt_form(HttpStreams& streams, const ServeBenchFlags& flags,
                           loadgen::WorkloadSpec& spec) {
  const bool is_chat = flags.options.body.endpoint == Endpoint::kChat;
  if (flags.prompt_format == "ids" && is_chat)
    return invalid("--prompt-format ids: chats take text only");
  if (flags.prompt_format == "text" || is_chat) return {};
  DUNLIN_ASSIGN(last, last_token_id(streams, flags.options));
  if (!last && flags.prompt_format == "ids")
    return invalid(fmt::format("{} does not take prompts as token ids", flags.options.url));
  spec.form.as_ids = last.has_value();
  if (!last) return {};
  spec.form.last_id = *last;
  spec.form.first_id = std::min<TokenId>(1000, *last / 2);  // the first are bytes and controls
  return {};
}

// A run with a progress line.
loadgen::LoadRun run(HttpStreams& streams, const std::vector<LoadRequest>& workload,
                     const ServeBenchFlags& flags, const char* label,
                     terminal::SignalPipe& signals) {
  ProgressBar bar(label, flags.quiet);
  loadgen::LoadWatch watch;
  watch.wake_fd = signals.fd();
  watch.should_stop = [&signals] { return signals.take().has_value(); };
  watch.on_progress = [&bar](const loadgen::LoadProgress& progress) {
    std::string text =
        fmt::format("{} of {}, {} under way", progress.finished, progress.total, progress.running);
    if (progress.failed > 0) text += fmt::format(", {} failed", progress.failed);
    bar.update_fraction(
        static_cast<double>(progress.finished) / static_cast<double>(progress.total), text);
  };
  return loadgen::run_load(streams, workload, flags.options, watch);
}

// Fails where no request of the warm-up was answered: the others wouldn't be either.
Outcome warm_up(HttpStreams& streams, const std::vector<LoadRequest>& workload,
                const ServeBenchFlags& flags, const loadgen::WorkloadSpec& spec,
                terminal::SignalPipe& signals) {
  if (flags.warmup == 0) return {};
  const auto requests = make_warmup(workload, flags.warmup, spec);
  const loadgen::LoadRun warmup = run(streams, requests, flags, "warming up", signals);
  if (warmup.interrupted) return fail(StatusCode::kCancelled, "interrupted while warming up");
  for (const loadgen::RequestRecord& record : warmup.records)
    if (record.is_ok()) return {};
  const loadgen::RequestRecord& first = warmup.records.front();
  return fail(StatusCode::kUnavailable,
              fmt::format("{} does not answer as it should: {}: {}", flags.options.url,
                          failure_name(first.failure), first.message));
}

Result<int> print_results(const ServeBenchFlags& flags, const loadgen::WorkloadSpec& spec,
                          const loadgen::LoadRun& finished, loadgen::RunFacts facts) {
  loadgen::SummaryOptions options;
  options.percentiles = flags.percentiles;
  options.duration_s = finished.duration_s;
  DUNLIN_ASSIGN(goodput, loadgen::parse_goodput(flags.goodput));
  options.goodput = goodput;
  facts.request_rate = spec.request_rate;
  facts.workload = flags.load.workload;
  facts.endpoint = flags.endpoint;
  facts.prompts = spec.form.as_ids ? "token ids" : "text";
  facts.concurrency = flags.options.concurrency;
  facts.seed = spec.seed;
  facts.interrupted = finished.interrupted;
  const loadgen::Summary summary = loadgen::summarize(finished.records, options);
  const std::span<const loadgen::RequestRecord> records(
      finished.records.data(), flags.with_records ? finished.records.size() : 0);
  const std::string json = format_json(facts, summary, options, records);
  if (!flags.save.empty()) DUNLIN_TRY(write_asked_file("--save", flags.save, json));
  if (summary.without_usage > 0)
    note(fmt::format("{} answers came without usage: their tokens are counted in pieces",
                     summary.without_usage));
  std::fputs((flags.output == "json" ? json : format_block(facts, summary, options)).c_str(),
             stdout);
  if (finished.interrupted) return kInterruptedCode;
  return summary.completed > 0 ? 0 : 1;
}

Result<int> run_serve_bench(ServeBenchFlags flags) {
  DUNLIN_ASSIGN(spec, workload_spec(flags.load));
  DUNLIN_TRY(loadgen::parse_goodput(flags.goodput));
  loadgen::LoadOptions& options = flags.options;
  const bool is_chat = flags.endpoint == "chat";
  options.body.endpoint = is_chat ? Endpoint::kChat : Endpoint::kCompletions;
  const std::string root = api_root(flags.url);
  options.url = root + (is_chat ? "/chat/completions" : "/completions");
  options.timeout = std::chrono::milliseconds(std::llround(flags.timeout_s * 1000));
  options.connect_timeout = std::chrono::milliseconds(std::llround(flags.connect_timeout_s * 1000));
  DUNLIN_TRY(loadgen::check_form({}, options.body));
  const int wanted = options.concurrency > 0 ? options.concurrency : spec.num_requests;
  const int possible = raise_file_limit(wanted + kSpareFiles) - kSpareFiles;
  if (options.concurrency > possible)
    return invalid(
        fmt::format("--concurrency {}: this process may open {} connections; raise the "
                    "limit with ulimit -n",
                    options.concurrency, possible));
  const int most = std::min(wanted, possible);
  DUNLIN_ASSIGN(streams, HttpStreams::create(static_cast<std::size_t>(most)));
  if (options.body.model.empty()) {
    DUNLIN_ASSIGN(model, first_model(*streams, root, options));
    options.body.model = model;
  }
  DUNLIN_TRY(choose_prompt_form(*streams, flags, spec));
  DUNLIN_ASSIGN(workload, make_workload(spec));
  DUNLIN_TRY(loadgen::check_form(workload, options.body));

  terminal::SignalPipe signals({SIGINT, SIGTERM});
  DUNLIN_TRY(warm_up(*streams, workload, flags, spec, signals));
  loadgen::RunFacts facts;
  facts.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  facts.url = root;
  facts.model = options.body.model;
  facts.num_requests = static_cast<int>(workload.size());
  if (options.concurrency == 0 && possible < wanted) options.concurrency = possible;
  const loadgen::LoadRun finished = run(*streams, workload, flags, "asking", signals);
  return print_results(flags, spec, finished, std::move(facts));
}

void add_server_options(CLI::App& command, ServeBenchFlags& flags) {
  loadgen::LoadOptions& options = flags.options;
  command.add_option("--url,--base-url", flags.url, "The server, with or without /v1")
      ->capture_default_str();
  command.add_option("--model", options.body.model,
                     "The model's name there (default: the first that it lists)");
  command.add_option("--endpoint", flags.endpoint, "completions or chat")
      ->check(CLI::IsMember({"completions", "chat"}))
      ->capture_default_str();
  command.add_option("--api-key", options.api_key, "Sent as a bearer token")
      ->envname("DUNLIN_API_KEY");
  command
      .add_option("--prompt-format", flags.prompt_format,
                  "Generated prompts as ids (exact lengths), text, or auto: ids where the server "
                  "takes them")
      ->check(CLI::IsMember({"auto", "ids", "text"}))
      ->capture_default_str();
  command.add_flag("--ignore-eos", options.body.ignore_eos,
                   "Answers go on to their length (where the server knows ignore_eos)");
  command.add_option("--temperature", options.body.temperature, "0: greedy")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command.add_option("--extra-body", options.body.extra,
                     "A JSON object whose fields every request gets");
  const auto seconds = CLI::Range(0.001, 1e6);
  command.add_option("--timeout", flags.timeout_s, "Seconds that a request may take")
      ->check(seconds)
      ->capture_default_str();
  command.add_option("--connect-timeout", flags.connect_timeout_s, "Seconds for its connection")
      ->check(seconds)
      ->capture_default_str();
}

void add_arrival_options(CLI::App& command, ServeBenchFlags& flags) {
  command
      .add_option("--request-rate", flags.load.spec.request_rate,
                  "Requests a second, arriving as a Poisson process (default: inf, all at once)")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--concurrency,--max-concurrency", flags.options.concurrency,
                  "Requests under way at most (default: as they arrive)")
      ->check(CLI::Range(1, 1'000'000));
  command
      .add_option("--speed", flags.load.spec.speed,
                  "replay: so many times as fast as the trace was taken")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--leave", flags.load.spec.leave_share,
                  "Share of the clients that leave before their answer is whole")
      ->check(CLI::Range(0.0, 1.0));
  command
      .add_option("--warmup,--num-warmups", flags.warmup,
                  "Requests before the measured ones, of other words")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
}

void add_report_options(CLI::App& command, ServeBenchFlags& flags) {
  command
      .add_option("--goodput", flags.goodput,
                  "Limits in ms that good requests keep: ttft:500 tpot:50 itl:100 e2el:10000")
      ->delimiter(',');
  command
      .add_option("--metric-percentiles", flags.percentiles, "Percentiles shown, comma separated")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command.add_option("-o,--output", flags.output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command.add_option("--save", flags.save, "Also write the JSON to this file");
  command.add_flag("--records", flags.with_records, "The JSON tells of each request");
  command.add_flag("-q,--quiet", flags.quiet, "No progress line");
}

}  // namespace

void add_bench_serve(CLI::App& bench, Invocation& invocation) {
  auto flags = std::make_shared<ServeBenchFlags>();
  CLI::App& command =
      *bench.add_subcommand("serve", "Measure a server: what its clients see under load");
  add_server_options(command, *flags);
  add_load_flags(command, flags->load);
  add_arrival_options(command, *flags);
  add_report_options(command, *flags);
  command.footer(
      "Prints vLLM's block; flags have vLLM's names too. Ctrl-C prints what there is.\n\n"
      "Examples:\n"
      "  dunlin bench serve --concurrency 32 --input-len 32:1024 --output-len 16:256 --ignore-eos\n"
      "  dunlin bench serve --url http://127.0.0.1:9000 --request-rate 4 --goodput ttft:500 "
      "tpot:50\n"
      "  dunlin bench serve --workload shared-prefix --prefix-len 2000 --input-len 32\n"
      "  dunlin bench serve --workload replay --dataset trace.jsonl --endpoint chat");
  command.callback([flags, &invocation] {
    invocation.run = [flags] { return exit_code(run_serve_bench(*flags)); };
  });
}

}  // namespace dunlin::cli
