#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/bench_format.h"
#include "cli/bench_offline.h"
#include "cli/bench_runner.h"
#include "cli/bench_serve.h"
#include "cli/commands.h"
#include "cli/model_flags.h"
#include "cli/model_store.h"
#include "cpu/isa.h"
#include "cpu/memory_limit.h"
#include "cpu/thread_pool.h"
#include "kernels/machine_limits.h"
#include "model/open_model.h"

namespace dunlin::cli {
namespace {

struct BenchFlags {
  std::string model;
  std::string isa = "auto";
  std::string output = "md";
  int batch_tokens = 512;
  int repetitions = 5;
  bool no_kv_cache = false;
  bool machine = false;
  std::vector<int> n_threads;                                                    // 0: every core
  std::vector<int> n_prompt{512}, n_gen{128}, n_depth{0};                        // bench
  std::vector<int> batch_prompt{128}, batch_gen{128}, batch_seqs{1, 8, 16, 32};  // bench batched
  KvFormats kv_formats;
  FetchOptions fetch;
};

struct Bench {
  OpenedModel opened;
  BenchModel facts;
  BenchShape shape;
};

std::vector<int> thread_counts(const BenchFlags& flags) {
  std::vector<int> counts = flags.n_threads;
  if (counts.empty()) counts.push_back(0);
  std::replace(counts.begin(), counts.end(), 0, default_num_threads());
  return counts;
}

Result<Bench> open_bench(const BenchFlags& flags, int num_threads) {
  DUNLIN_ASSIGN(resolved, resolve_model(flags.model, flags.fetch));
  DUNLIN_ASSIGN(isa, parse_isa(flags.isa));
  LoadOptions options;
  options.isa = isa;
  options.num_threads = num_threads;
  options.kv_formats = flags.kv_formats;
  DUNLIN_ASSIGN(opened, open_model(resolved.path, options));
  if (opened.config.is_encoder)
    return invalid(
        fmt::format("{}: an embedding model generates no text, which is what is "
                    "measured here",
                    resolved.path));
  Bench bench{std::move(opened), {}, {}};
  const ModelSummary& summary = bench.opened.summary;
  bench.facts = {resolved.path,
                 fmt::format("{} {}L {}", bench.opened.config.architecture,
                             bench.opened.config.num_layers(), summary.main_dtype),
                 summary.weight_bytes, summary.num_params, fmt::format("CPU {}", isa_name(isa))};
  bench.shape = {flags.batch_tokens, flags.repetitions, flags.no_kv_cache, summary.layer_weights,
                 summary.head_weights};
  return bench;
}

BenchOutput output_of(const BenchFlags& flags) {
  return flags.output == "json"  ? BenchOutput::kJson
         : flags.output == "csv" ? BenchOutput::kCsv
                                 : BenchOutput::kMarkdown;
}

// With one thread as well: two cores of some machines share one physical core.
int run_machine(const BenchFlags& flags) {
  const auto isa = parse_isa(flags.isa);
  if (!isa) return report(isa.error());
  LimitOptions options;
  options.rounds = flags.repetitions;
  const std::int64_t available = memory_limit().available_bytes;
  if (available > 0) options.buffer_bytes = std::min(options.buffer_bytes, available / 2);
  std::vector<MachineLimits> rows;
  std::vector<int> counts = thread_counts(flags);
  if (counts.size() == 1 && counts[0] > 1) counts.insert(counts.begin(), 1);
  for (const int threads : counts) {
    ThreadPool pool(threads);
    rows.push_back(measure_machine(pool, *isa, options));
  }
  std::fputs(format_machine(fmt::format("CPU {}", isa_name(*isa)), rows, output_of(flags)).c_str(),
             stdout);
  return 0;
}

int run_single(const BenchFlags& flags) {
  std::vector<BenchTest> tests;
  for (const int threads : thread_counts(flags))
    for (const int depth : flags.n_depth) {
      for (const int n : flags.n_prompt)
        if (n > 0) tests.push_back({n, 0, depth, threads});
      for (const int n : flags.n_gen)
        if (n > 0) tests.push_back({0, n, depth, threads});
    }
  if (tests.empty())
    return report(
        Status(StatusCode::kInvalidArgument, "there is nothing to measure: -p and -n are both 0"));
  std::optional<Bench> bench;
  std::vector<BenchResult> results;
  for (const BenchTest& test : tests) {
    if (results.empty() || test.n_threads != results.back().test.n_threads) {
      bench.reset();  // one model in memory at a time
      auto opened = open_bench(flags, test.n_threads);
      if (!opened) return report(opened.error());
      bench = std::move(*opened);
    }
    fmt::print(stderr, "measuring {} of {} ...\n", results.size() + 1, tests.size());
    results.push_back(run_bench(*bench->opened.model, test, bench->shape));
  }
  std::fputs(format_bench(bench->facts, results, output_of(flags)).c_str(), stdout);
  return 0;
}

int run_batched(const BenchFlags& flags) {
  const int n_threads = thread_counts(flags).front();
  auto bench = open_bench(flags, n_threads);
  if (!bench) return report(bench.error());
  const bool table = flags.output != "jsonl";
  if (table) std::fputs(batched_header().c_str(), stdout);
  double prefill_s = 0, decode_s = 0;
  BatchedResult last;
  for (const int n_prompt : flags.batch_prompt)
    for (const int n_gen : flags.batch_gen)
      for (const int n_seqs : flags.batch_seqs) {
        last = run_batched_bench(*bench->opened.model, n_prompt, n_gen, n_seqs, bench->shape);
        std::fputs((table ? format_batched(last) : format_batched_jsonl(n_threads, last)).c_str(),
                   stdout);
        std::fflush(stdout);
        prefill_s += last.prefill_s;
        decode_s += last.decode_s;
      }
  if (table && prefill_s + decode_s > 0)
    fmt::print(
        "\ntime: {:.0f}% prefill, {:.0f}% decode. Last row's decode: {:.1f} GB/s of weights, "
        "{:.1f} GOP/s in the linear layers.\n",
        100 * prefill_s / (prefill_s + decode_s), 100 * decode_s / (prefill_s + decode_s),
        last.weight_bytes_per_s / 1e9, last.ops_per_s / 1e9);
  return 0;
}

void add_common(CLI::App& command, BenchFlags& flags, bool many_threads) {
  add_model_options(command, "MODEL", flags.model, flags.fetch).envname("DUNLIN_MODEL");
  CLI::Option* threads =
      command
          .add_option("-t,--threads", flags.n_threads,
                      "Compute threads (default: every core this process may use)")
          ->allow_extra_args(false)
          ->check(CLI::Range(0, 1024))
          ->envname("DUNLIN_THREADS");
  if (many_threads) {
    threads->description(
        "Compute threads, comma separated (default: every core this process may use)");
    threads->delimiter(',');
  } else {
    threads->expected(1);
  }
  add_isa_option(command, flags.isa);
  add_cache_type_options(command, flags.kv_formats);
  command.add_option("-b,--batch-tokens", flags.batch_tokens, "Tokens of a prefill step")
      ->check(CLI::Range(1, 16384))
      ->capture_default_str();
}

// Numbers, comma separated in one argument: what follows it is another's.
void add_list_option(CLI::App& command, const std::string& names, std::vector<int>& values,
                     const std::string& help, const CLI::Range& range) {
  command.add_option(names, values, help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(range)
      ->capture_default_str();
}

void add_batched(CLI::App& bench, Invocation& invocation) {
  const auto counts = CLI::Range(0, 1 << 20);
  auto flags = std::make_shared<BenchFlags>();
  CLI::App& batched = *bench.add_subcommand("batched", "Measure many sequences at once");
  add_common(batched, *flags, /*many_threads=*/false);
  add_list_option(batched, "--npp,-P", flags->batch_prompt, "Prompt tokens of each sequence (-npp)",
                  counts);
  add_list_option(batched, "--ntg,-G", flags->batch_gen, "Tokens each generates (-ntg)", counts);
  add_list_option(batched, "--npl,-L", flags->batch_seqs, "Sequences at once (-npl)",
                  CLI::Range(1, 4096));
  batched.add_option("-o,--output", flags->output, "md or jsonl")
      ->check(CLI::IsMember({"md", "jsonl"}))
      ->capture_default_str();
  batched.footer(
      "Columns and field names are llama-batched-bench's.\n\nExample:\n  dunlin bench batched "
      "smollm2-135m --npp 128 --ntg 64 --npl 1,8,16");
  batched.callback(
      [flags, &invocation] { invocation.run = [flags] { return run_batched(*flags); }; });
}

}  // namespace

void add_bench(CLI::App& app, Invocation& invocation) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App& command = *app.add_subcommand("bench", "Measure a model, or a server (bench serve)");
  const auto counts = CLI::Range(0, 1 << 20);
  add_common(command, *flags, /*many_threads=*/true);
  command.get_option("MODEL")->required(false);
  add_list_option(command, "-p,--n-prompt", flags->n_prompt, "Prompt tokens, comma separated",
                  counts);
  add_list_option(command, "-n,--n-gen", flags->n_gen, "Tokens to generate, comma separated",
                  counts);
  add_list_option(command, "-d,--n-depth", flags->n_depth,
                  "Tokens of context in front, comma separated", counts);
  command.add_option("-r,--repetitions", flags->repetitions, "Times each is measured")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_flag("--no-kv-cache", flags->no_kv_cache,
                   "The contrast: compute the whole text again for each token");
  command.add_flag("--machine", flags->machine,
                   "Without a model: what this machine's memory and cores can do at most");
  command.add_option("-o,--output", flags->output, "md, json or csv")
      ->check(CLI::IsMember({"md", "json", "csv"}))
      ->capture_default_str();
  command.footer(
      "Columns and field names are llama-bench's.\n\nExample:\n  dunlin bench smollm2-135m -p 512 "
      "-n 128 -d 0,4096\n  dunlin bench --machine");
  command.callback([flags, &invocation] {
    if (invocation.run) return;  // a subcommand was named
    invocation.run = [flags] {
      if (flags->machine) return run_machine(*flags);
      return flags->model.empty() ? report(Status(StatusCode::kInvalidArgument,
                                                  "bench needs a MODEL; try dunlin bench --help"))
                                  : run_single(*flags);
    };
  });
  add_batched(command, invocation);
  add_bench_serve(command, invocation);
  add_bench_throughput(command, invocation);
  add_bench_latency(command, invocation);
}

}  // namespace dunlin::cli
