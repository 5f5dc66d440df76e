#include "cli/plan_report.h"

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/progress.h"

namespace dunlin::cli {
namespace {

void print_line(std::string_view name, const std::string& value) {
  fmt::print("{:<15}{}\n", name, value);
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.{}f} ms", seconds * 1e3, seconds < 0.1 ? 1 : 0);
}

// ", policy window,sinks=4,window=1024"; nothing for the usual one.
std::string policy_words(const KvPolicy& policy) {
  return policy == KvPolicy{} ? "" : ", policy " + to_string(policy);
}

void print_sizes(const PlanReport& r) {
  const auto part = [](std::string_view name, std::int64_t bytes, const std::string& what) {
    print_line(name, fmt::format("{:>9}  {}", format_memory(bytes), what));
  };
  part("weights", r.memory.weights, fmt::format("{} ({:.2f} bits a weight)", r.weights, r.bits));
  part("KV cache", r.memory.kv,
       fmt::format("{} x {} tokens, {} a token ({} keys, {} values)", r.batch, grouped(r.context),
                   format_memory(r.kv_bytes_per_token), r.cache_type_k, r.cache_type_v) +
           policy_words(r.kv_policy));
  part("scratch", r.memory.scratch,
       fmt::format("for steps of {} tokens and {} sequence{}", r.max_batch_tokens, r.batch,
                   r.batch == 1 ? "" : "s"));
  part("overhead", r.memory.overhead, "program, vocabulary, tables of blocks and sequences");
  const char* where = r.budget_is_measured ? "that are free here" : "of --memory";
  part("total", r.memory.total(),
       fmt::format("{} the {} {}", r.memory.total() <= r.budget ? "within" : "MORE THAN",
                   format_memory(r.budget), where));
}

void print_grid(const PlanReport& r) {
  fmt::print("\nmemory in all, by context and sequences at once; how many fit in {}\n{:>10}",
             format_memory(r.budget), "context");
  for (const int batch : r.batches) fmt::print("{:>11}", fmt::format("x {}", batch));
  fmt::print("{:>11}\n", "fit");
  for (std::size_t i = 0; i < r.contexts.size(); ++i) {
    fmt::print("{:>10}", grouped(r.contexts[i]));
    for (const std::int64_t bytes : r.grid[i]) fmt::print("{:>11}", format_memory(bytes));
    fmt::print("{:>11}\n", grouped(r.sequences[i]));
  }
}

void print_times(const PlanReport& r) {
  fmt::print("\ntime of an output token at least: the bytes that it reads, at {:.1f} GB/s{}\n",
             r.bytes_per_s * 1e-9, r.bandwidth_is_measured ? " (measured here)" : "");
  fmt::print("{:>10}{:>11}", "context", "x 1");
  if (r.batch > 1) fmt::print("{:>11}", fmt::format("x {}", r.batch));
  fmt::print("\n");
  const auto row = [&](const std::string& context, double one, double all) {
    fmt::print("{:>10}{:>11}", context, milliseconds(one));
    if (r.batch > 1) fmt::print("{:>11}", milliseconds(all));
    fmt::print("\n");
  };
  row("0", r.seconds_empty, r.batch_seconds_empty);
  row(grouped(r.context), r.seconds_full, r.batch_seconds_full);
}

void print_formats(const PlanReport& r) {
  fmt::print("\nother formats, with {} x {} tokens in {}\n", r.batch, grouped(r.context),
             format_memory(r.budget));
  fmt::print("{:>10}{:>7}{:>11}{:>11}{:>11}{:>11}\n", "format", "bits", "weights", "total", "fit",
             "a token");
  for (const PlannedFormat& f : r.formats) {
    fmt::print("{:>10}{:>7.2f}{:>11}{:>11}{:>11}{:>11}{}\n", f.name, f.bits,
               format_memory(f.memory.weights), format_memory(f.memory.total()),
               grouped(f.sequences), milliseconds(f.seconds_per_token),
               f.name == r.recommended ? "  <- recommended"
               : f.fits                ? ""
                                       : "  too large");
  }
  if (r.recommended.empty()) {
    fmt::print("Nothing fits: take a shorter --context, a smaller --batch or more --memory.\n");
  }
}

nlohmann::ordered_json json_of(const MemoryPlan& plan) {
  return {{"weights", plan.weights},   {"kv_cache", plan.kv},   {"scratch", plan.scratch},
          {"overhead", plan.overhead}, {"total", plan.total()}, {"kv_blocks", plan.num_blocks}};
}

}  // namespace

std::array<std::string, 2> memory_lines(const MemoryTable& table) {
  const MemoryPlan& plan = table.plan;
  std::array<std::string, 2> lines;
  lines[0] =
      fmt::format("memory: weights {} + KV cache {} + scratch {} + overhead {} = {}{}",
                  format_memory(plan.weights), format_memory(plan.kv), format_memory(plan.scratch),
                  format_memory(plan.overhead), format_memory(plan.total()),
                  table.budget > 0 ? " of " + format_memory(table.budget) : "");
  lines[1] = fmt::format("KV cache: {} a token{}; sequences that fit at once, by context:",
                         format_memory(table.kv_bytes_per_token), policy_words(table.kv_policy));
  for (const MemoryTable::Fit& fit : table.fits)
    lines[1] += fmt::format("  {}: {}", grouped(fit.context), grouped(fit.sequences));
  return lines;
}

nlohmann::ordered_json memory_json(const MemoryTable& table) {
  nlohmann::ordered_json fits = nlohmann::ordered_json::array();
  for (const MemoryTable::Fit& fit : table.fits)
    fits.push_back({{"context", fit.context}, {"sequences", fit.sequences}});
  return {{"memory", json_of(table.plan)},
          {"budget", table.budget},
          {"kv_bytes_per_token", table.kv_bytes_per_token},
          {"kv_policy", to_string(table.kv_policy)},
          {"sequences_that_fit", fits}};
}

void print_plan(const PlanReport& r) {
  print_line("model", fmt::format("{} ({}, {:.3g} billion parameters, {} layers, context {})",
                                  r.model, r.architecture, static_cast<double>(r.num_params) * 1e-9,
                                  r.num_layers, grouped(r.model_context)));
  print_sizes(r);
  print_grid(r);
  print_times(r);
  print_formats(r);
}

void print_plan_json(const PlanReport& r) {
  using Json = nlohmann::ordered_json;
  Json grid = Json::array(), formats = Json::array(), fit = Json::array();
  for (std::size_t i = 0; i < r.contexts.size(); ++i) {
    for (std::size_t j = 0; j < r.batches.size(); ++j)
      grid.push_back(
          {{"context", r.contexts[i]}, {"sequences", r.batches[j]}, {"bytes", r.grid[i][j]}});
    fit.push_back({{"context", r.contexts[i]}, {"sequences", r.sequences[i]}});
  }
  for (const PlannedFormat& f : r.formats) {
    formats.push_back({{"format", f.name},
                       {"bits_per_weight", f.bits},
                       {"memory", json_of(f.memory)},
                       {"sequences_that_fit", f.sequences},
                       {"fits", f.fits},
                       {"seconds_per_token", f.seconds_per_token}});
  }
  const Json out = {{"model", r.model},
                    {"architecture", r.architecture},
                    {"parameters", r.num_params},
                    {"layers", r.num_layers},
                    {"model_context", r.model_context},
                    {"weights", r.weights},
                    {"bits_per_weight", r.bits},
                    {"cache_type_k", r.cache_type_k},
                    {"cache_type_v", r.cache_type_v},
                    {"kv_policy", to_string(r.kv_policy)},
                    {"kv_bytes_per_token", r.kv_bytes_per_token},
                    {"context", r.context},
                    {"batch", r.batch},
                    {"memory", json_of(r.memory)},
                    {"budget", r.budget},
                    {"fits", r.memory.total() <= r.budget},
                    {"grid", grid},
                    {"sequences_that_fit", fit},
                    {"bytes_per_second", r.bytes_per_s},
                    {"seconds_per_token",
                     {{"one_empty", r.seconds_empty},
                      {"one_full", r.seconds_full},
                      {"batch_empty", r.batch_seconds_empty},
                      {"batch_full", r.batch_seconds_full}}},
                    {"formats", formats},
                    {"recommended", r.recommended.empty() ? Json(nullptr) : Json(r.recommended)}};
  fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace dunlin::cli
