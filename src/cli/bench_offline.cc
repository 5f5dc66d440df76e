#include "cli/bench_offline.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/load_flags.h"
#include "cli/progress.h"
#include "cli/session_flags.h"
#include "loadgen/summary.h"

namespace dunlin::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using loadgen::LoadRequest;

struct OfflineFlags {
  SessionFlags session;
  LoadFlags load;
  std::string output = "text";
  int batch_size = 8, num_warmup = 10, num_iterations = 30;  // latency
};

// What an engine computed, and how long it took from the first submission to the last token.
struct Computed {
  double seconds = 0;
  long long input_tokens = 0, cached_tokens = 0, output_tokens = 0;
};

// Waits for the end of a request and counts its tokens.
Outcome drain(TokenStream& stream, Computed& computed) {
  constexpr std::chrono::seconds kWait{10};
  while (true) {
    const std::optional<TokenOutput> output = stream.wait(kWait);
    if (!output || output->finish == FinishReason::kNone) continue;
    if (output->error) return tl::unexpected(*output->error);
    computed.input_tokens += output->stats.num_prompt_tokens;
    computed.cached_tokens += output->stats.num_cached_tokens;
    computed.output_tokens += output->stats.num_output_tokens;
    return {};
  }
}

// All requests at once, greedy, each to its full length.
Result<Computed> compute(Engine& engine, const std::vector<LoadRequest>& requests,
                         ProgressBar* bar) {
  Computed computed;
  const Clock::time_point start = Clock::now();
  std::vector<std::unique_ptr<TokenStream>> streams;
  for (const LoadRequest& request : requests) {
    EngineRequest asked;
    asked.prompt = request.ids;
    asked.sampling.max_tokens = request.max_tokens;
    asked.sampling.temperature = 0;
    asked.sampling.ignore_eos = true;
    DUNLIN_ASSIGN(stream, engine.submit(std::move(asked)));
    streams.push_back(std::move(stream));
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    DUNLIN_TRY(drain(*streams[i], computed));
    if (bar != nullptr)
      bar->update_fraction(static_cast<double>(i + 1) / static_cast<double>(streams.size()),
                           fmt::format("{} of {}", i + 1, streams.size()));
  }
  computed.seconds = seconds_since(start);
  return computed;
}

// Prompts of ordinary token ids of the model.
loadgen::PromptForm prompt_form(const Session& session) {
  loadgen::PromptForm form;
  form.as_ids = true;
  form.last_id = session.tokenizer().vocab_size() * 9 / 10;
  form.first_id = std::min(form.first_id, form.last_id / 2);
  return form;
}

// Texts of a dataset as token ids.
Outcome tokenize(std::vector<LoadRequest>& requests, const Session& session) {
  for (LoadRequest& request : requests) {
    if (!request.messages.empty())
      return invalid("--dataset: chat messages need a server; use bench serve --endpoint chat");
    if (!request.ids.empty()) continue;
    DUNLIN_ASSIGN(ids, session.completion_prompt(request.text));
    request.ids = std::move(ids);
  }
  return {};
}

Result<std::unique_ptr<Session>> open_for(const OfflineFlags& flags, int num_requests) {
  SessionFlags session = flags.session;
  session.session.engine.max_queue = std::max(session.session.engine.max_queue, num_requests);
  return open_session(session);
}

Result<int> run_throughput(const OfflineFlags& flags) {
  DUNLIN_ASSIGN(spec, workload_spec(flags.load));
  DUNLIN_ASSIGN(session, open_for(flags, spec.num_requests));
  spec.form = prompt_form(*session);
  DUNLIN_ASSIGN(workload, make_workload(spec));
  DUNLIN_TRY(tokenize(workload, *session));
  DUNLIN_TRY(compute(session->engine(), make_warmup(workload, 1, spec), nullptr));
  ProgressBar bar("computing", flags.session.fetch.quiet);
  DUNLIN_ASSIGN(computed, compute(session->engine(), workload, &bar));
  const double seconds = std::max(computed.seconds, 1e-9);
  const auto total = static_cast<double>(computed.input_tokens + computed.output_tokens);
  const auto output = static_cast<double>(computed.output_tokens);
  const auto count = static_cast<double>(workload.size());
  if (flags.output == "json") {
    Json json;
    json["elapsed_time"] = computed.seconds;
    json["num_requests"] = workload.size();
    json["total_num_tokens"] = computed.input_tokens + computed.output_tokens;
    json["total_input_tokens"] = computed.input_tokens;
    json["total_cached_tokens"] = computed.cached_tokens;
    json["total_output_tokens"] = computed.output_tokens;
    json["requests_per_second"] = count / seconds;
    json["tokens_per_second"] = total / seconds;
    json["output_tokens_per_second"] = output / seconds;
    fmt::print("{}\n", json.dump(2));
    return 0;
  }
  fmt::print(
      "Throughput: {:.2f} requests/s, {:.2f} total tokens/s, {:.2f} output tokens/s\n"
      "Total num prompt tokens:  {}\nTotal num output tokens:  {}\n",
      count / seconds, total / seconds, output / seconds, computed.input_tokens,
      computed.output_tokens);
  return 0;
}

Result<int> run_latency(OfflineFlags flags) {
  // Each round computes its prompts, as the first did.
  flags.session.session.engine.prefix_cache = false;
  flags.load.spec.num_requests = flags.batch_size;
  flags.session.session.engine.max_seqs =
      std::max(flags.session.session.engine.max_seqs, flags.batch_size);
  DUNLIN_ASSIGN(spec, workload_spec(flags.load));
  DUNLIN_ASSIGN(session, open_for(flags, spec.num_requests));
  spec.form = prompt_form(*session);
  DUNLIN_ASSIGN(workload, make_workload(spec));
  ProgressBar bar("measuring", flags.session.fetch.quiet);
  std::vector<double> latencies;
  const int rounds = flags.num_warmup + flags.num_iterations;
  for (int i = 0; i < rounds; ++i) {
    DUNLIN_ASSIGN(computed, compute(session->engine(), workload, nullptr));
    bar.update_fraction(static_cast<double>(i + 1) / rounds,
                        fmt::format("{} of {}", i + 1, rounds));
    if (i >= flags.num_warmup) latencies.push_back(computed.seconds);
  }
  constexpr int kPercentiles[] = {10, 25, 50, 75, 90, 99};
  const std::vector<double> wanted(std::begin(kPercentiles), std::end(kPercentiles));
  const loadgen::Distribution found = loadgen::distribution(latencies, wanted);
  Json json, percentiles;
  std::string text = fmt::format("Avg latency: {:.4f} seconds\n", found.mean);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    percentiles[std::to_string(kPercentiles[i])] = found.percentiles[i];
    text += fmt::format("{}% percentile latency: {:.4f} seconds\n", kPercentiles[i],
                        found.percentiles[i]);
  }
  json["avg_latency"] = found.mean;
  json["latencies"] = latencies;
  json["percentiles"] = percentiles;
  std::fputs((flags.output == "json" ? json.dump(2) + "\n" : text).c_str(), stdout);
  return 0;
}

CLI::App& add_command(CLI::App& bench, const char* name, const char* help, OfflineFlags& flags) {
  CLI::App& command = *bench.add_subcommand(name, help);
  add_session_flags(command, flags.session);
  command.add_flag("-q,--quiet", flags.session.fetch.quiet, "No progress line");
  command.add_option("-o,--output", flags.output, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  return command;
}

}  // namespace

void add_bench_throughput(CLI::App& bench, Invocation& invocation) {
  auto flags = std::make_shared<OfflineFlags>();
  CLI::App& command = add_command(
      bench, "throughput", "Measure the engine: requests that are all there at once", *flags);
  add_load_flags(command, flags->load);
  command.footer(
      "Example:\n  dunlin bench throughput smollm2-135m -n 64 --input-len 32:1024 --output-len "
      "16:256");
  command.callback([flags, &invocation] {
    invocation.run = [flags] { return exit_code(run_throughput(*flags)); };
  });
}

void add_bench_latency(CLI::App& bench, Invocation& invocation) {
  auto flags = std::make_shared<OfflineFlags>();
  flags->load.input_len = "32";
  flags->load.output_len = "128";
  CLI::App& command =
      add_command(bench, "latency", "Measure the engine: how long one batch takes", *flags);
  const auto count = CLI::Range(1, 100'000);
  command.add_option("--input-len", flags->load.input_len, "Tokens of a prompt")
      ->capture_default_str();
  command.add_option("--output-len", flags->load.output_len, "Tokens of an answer")
      ->capture_default_str();
  command.add_option("--batch-size", flags->batch_size, "Requests at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command.add_option("--num-iters-warmup", flags->num_warmup, "Rounds that are not counted")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  command.add_option("--num-iters", flags->num_iterations, "Rounds that are")
      ->check(count)
      ->capture_default_str();
  command.footer("Example:\n  dunlin bench latency smollm2-135m --batch-size 8 --num-iters 10");
  command.callback([flags, &invocation] {
    invocation.run = [flags] { return exit_code(run_latency(*flags)); };
  });
}

}  // namespace dunlin::cli
