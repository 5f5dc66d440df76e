// `dunlin plan`: what a model will take and how fast it can be at most, without loading it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <memory>

#include "cli/commands.h"
#include "cli/model_flags.h"
#include "cli/model_store.h"
#include "cli/plan_report.h"
#include "cli/session_flags.h"
#include "cpu/memory_limit.h"
#include "cpu/thread_pool.h"
#include "kernels/machine_limits.h"
#include "model/open_model.h"

namespace dunlin::cli {
namespace {

constexpr int kUsualContext = 4096;
constexpr std::array<std::string_view, 7> kTableFormats = {"bf16",   "q8_0", "q6_k", "q5_k_m",
                                                           "q4_k_m", "q3_k", "q2_k"};
// What is above costs twice the time for no quality that shows.
constexpr std::string_view kBestRecommended = "q8_0";
constexpr std::array<int, 4> kBatches = {1, 8, 32, 128};

struct PlanFlags {
  std::string model, weights, output = "text", memory, isa = "auto";
  KvFormats kv_formats;
  std::string kv_policy = "full";
  int context = 0, batch = 1, num_threads = 0;
  int max_batch_tokens = EngineConfig().max_batch_tokens;
  double bandwidth = 0;  // GB/s; 0: measured
  FetchOptions fetch;
};

// All that the numbers come from.
struct Planned {
  DescribedModel model;
  PlanFlags flags;
  Isa isa = Isa::kReference;
  int num_threads = 1;
  KvLayout layout;
  KvPolicy kv_policy;
  std::int64_t budget = 0;
  double bytes_per_s = 0;

  MemoryPlanner planner(const WeightSizes& sizes, int batch, int context) const {
    EngineConfig limits;
    limits.max_seqs = batch;
    limits.max_context = context;
    limits.max_batch_tokens = flags.max_batch_tokens;
    limits.kv_policy = kv_policy;
    return {model.config, sizes, layout, num_threads, limits};
  }
  WeightSizes sizes(std::string_view format) const {
    if (format == "int8") return ideal_weight_sizes(model.config, isa, 8);
    if (format == "int4") return ideal_weight_sizes(model.config, isa, 4);
    return weight_sizes(model.config, isa, *QuantRecipe::find(format));
  }
  // What a token behind `context` others reads of the cache, but for quest's first layers.
  double policy_bytes(int context) const {
    const auto bytes = [](std::int64_t blocks, std::int64_t block) {
      return static_cast<double>(blocks * block);
    };
    if (kv_policy.type != KvPolicyType::kQuest || context <= kv_policy.budget)
      return bytes(KvCacheManager::held_blocks(layout, context, context, kv_policy),
                   layout.block_bytes());
    return bytes(layout.blocks_for(kv_policy.budget), layout.block_bytes()) +
           bytes(layout.blocks_for(context), layout.block_bounds_bytes());
  }
  // A step that gives each of `batch` sequences a token behind `context` others.
  double step_seconds(const WeightSizes& sizes, int batch, int context) const {
    const double kv = policy_bytes(context);
    return (sizes.step_bytes(model.config.moe, batch) + batch * kv) / bytes_per_s;
  }
};

std::vector<int> grid_contexts(int context, int model_context) {
  std::vector<int> contexts = {context};
  for (int more = 1024; more < model_context; more *= 4) contexts.push_back(more);
  contexts.push_back(model_context);
  std::sort(contexts.begin(), contexts.end());
  contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());
  return contexts;
}

void add_grid(const Planned& p, const WeightSizes& sizes, PlanReport& report) {
  report.contexts = grid_contexts(report.context, std::max(report.context, report.model_context));
  report.batches.assign(kBatches.begin(), kBatches.end());
  if (std::find(kBatches.begin(), kBatches.end(), report.batch) == kBatches.end())
    report.batches.push_back(report.batch);
  std::sort(report.batches.begin(), report.batches.end());
  for (const int context : report.contexts) {
    std::vector<std::int64_t>& row = report.grid.emplace_back();
    for (const int batch : report.batches)
      row.push_back(p.planner(sizes, batch, context).with_sequences(batch, context).total());
    const MemoryPlanner planner = p.planner(sizes, report.batch, context);
    report.sequences.push_back(planner.fitting_sequences(p.budget, context));
  }
}

void add_times(const Planned& p, const WeightSizes& sizes, PlanReport& report) {
  report.bytes_per_s = p.bytes_per_s;
  report.bandwidth_is_measured = p.flags.bandwidth == 0;
  report.seconds_empty = p.step_seconds(sizes, 1, 0);
  report.seconds_full = p.step_seconds(sizes, 1, report.context);
  report.batch_seconds_empty = p.step_seconds(sizes, report.batch, 0);
  report.batch_seconds_full = p.step_seconds(sizes, report.batch, report.context);
}

void add_formats(const Planned& p, PlanReport& report) {
  bool is_recommendable = false;
  for (const std::string_view name : kTableFormats) {
    const WeightSizes sizes = p.sizes(name);
    const MemoryPlanner planner = p.planner(sizes, report.batch, report.context);
    PlannedFormat& format = report.formats.emplace_back();
    format.name = name;
    format.bits =
        8.0 * static_cast<double>(sizes.stored_bytes) / static_cast<double>(sizes.num_params);
    format.memory = planner.with_sequences(report.batch, report.context);
    format.sequences = planner.fitting_sequences(p.budget, report.context);
    format.fits = format.memory.total() <= p.budget;
    format.seconds_per_token = p.step_seconds(sizes, 1, report.context);
    is_recommendable = is_recommendable || name == kBestRecommended;
    if (is_recommendable && format.fits && report.recommended.empty()) report.recommended = name;
  }
}

PlanReport make_report(const Planned& p, std::string name) {
  const ModelConfig& config = p.model.config;
  PlanReport report;
  report.model = std::move(name);
  report.architecture = config.architecture;
  report.num_layers = config.num_layers();
  report.model_context = config.context_length;
  report.context =
      p.flags.context > 0 ? p.flags.context : std::min(config.context_length, kUsualContext);
  report.batch = p.flags.batch;
  report.max_batch_tokens = std::max(p.flags.max_batch_tokens, report.batch);
  report.cache_type_k = kv_format_info(p.flags.kv_formats.k).name;
  report.cache_type_v = kv_format_info(p.flags.kv_formats.v).name;
  report.kv_policy = p.kv_policy;
  report.kv_bytes_per_token = p.layout.bytes_per_token();
  report.budget = p.budget;
  report.budget_is_measured = p.flags.memory.empty();
  WeightSizes sizes;
  if (!p.flags.weights.empty()) {
    report.weights = p.flags.weights;
    sizes = p.sizes(p.flags.weights);
  } else if (const auto absent = p.model.absent_weights) {
    report.weights = *absent == DType::kF32 ? "f32" : *absent == DType::kF16 ? "f16" : "bf16";
    sizes = weight_sizes(config, p.isa, [absent](const TensorSlot&) { return *absent; });
  } else {
    report.weights = "as stored";
    sizes = weight_sizes(config, p.isa, *p.model.checkpoint);
  }
  report.num_params = sizes.num_params;
  report.bits =
      8.0 * static_cast<double>(sizes.stored_bytes) / static_cast<double>(sizes.num_params);
  report.memory =
      p.planner(sizes, report.batch, report.context).with_sequences(report.batch, report.context);
  add_grid(p, sizes, report);
  add_times(p, sizes, report);
  add_formats(p, report);
  return report;
}

double measure_bandwidth(const Planned& p) {
  LimitOptions options;
  options.buffer_bytes = std::int64_t{256} << 20;
  options.rounds = 3;
  const std::int64_t available = memory_limit().available_bytes;
  if (available > 0) options.buffer_bytes = std::min(options.buffer_bytes, available / 2);
  ThreadPool pool(p.num_threads);
  return measure_read_speed(pool, p.isa, options);
}

Result<Planned> prepare(const PlanFlags& flags, const std::string& path) {
  Planned planned;
  planned.flags = flags;
  DUNLIN_ASSIGN(model, describe_model(path));
  planned.model = std::move(model);
  if (flags.context > planned.model.config.context_length) {
    return invalid(fmt::format("--context: the model has {} tokens of context, {} are asked for",
                               planned.model.config.context_length, flags.context));
  }
  DUNLIN_ASSIGN(isa, parse_isa(flags.isa));
  planned.isa = isa;
  planned.num_threads = flags.num_threads > 0 ? flags.num_threads : default_num_threads();
  planned.layout = kv_layout(planned.model.config, flags.kv_formats);
  DUNLIN_ASSIGN(policy, parse_kv_policy(flags.kv_policy));
  planned.kv_policy = policy;
  planned.budget = memory_budget(memory_limit());
  if (!flags.memory.empty()) {
    auto bytes = parse_bytes(flags.memory);
    if (!bytes) return tl::unexpected(bytes.error().with_prefix("--memory"));
    planned.budget = *bytes;
  }
  planned.bytes_per_s = flags.bandwidth > 0 ? flags.bandwidth * 1e9 : measure_bandwidth(planned);
  return planned;
}

int plan(const PlanFlags& flags) {
  // A config.json is no model that could be fetched.
  const bool is_config = std::filesystem::path(flags.model).extension() == ".json";
  ResolvedModel resolved{flags.model, flags.model};
  if (!is_config) {
    auto found = resolve_model(flags.model, flags.fetch);
    if (!found) return report(found.error());
    resolved = *found;
  }
  const auto planned = prepare(flags, resolved.path);
  if (!planned) return report(planned.error());
  const PlanReport made = make_report(*planned, resolved.name);
  flags.output == "json" ? print_plan_json(made) : print_plan(made);
  return 0;
}

void add_plan_flags(CLI::App& command, PlanFlags& flags) {
  std::vector<std::string> names = QuantRecipe::names();
  for (const char* ideal : {"int8", "int4"}) names.emplace_back(ideal);
  command
      .add_option("--context", flags.context,
                  "Tokens of a sequence (default: 4096, or the model's)")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  command.add_option("--batch", flags.batch, "Sequences at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      .add_option("--weights", flags.weights,
                  "A format that the weights would have (default: what they have)")
      ->check(CLI::IsMember(names));
  add_cache_type_options(command, flags.kv_formats);
  add_kv_policy_option(command, flags.kv_policy);
  command.add_option("--memory", flags.memory,
                     "What may be used, as 16G (default: what is free here, less a margin)");
  command
      .add_option("--bandwidth", flags.bandwidth,
                  "GB/s that the machine reads from memory (default: measured here)")
      ->check(CLI::PositiveNumber);
  command.add_option("--max-batch-tokens", flags.max_batch_tokens, "Tokens computed in one step")
      ->check(CLI::Range(16, 1 << 16))
      ->capture_default_str();
  command.add_option("--output", flags.output, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
}

}  // namespace

void add_plan(CLI::App& app, Invocation& invocation) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App& command = *app.add_subcommand(
      "plan", "Say what a model will take of memory and how fast it can be, without loading it");
  add_model_options(command, "MODEL", flags->model, flags->fetch);
  add_plan_flags(command, *flags);
  add_compute_options(command, "--threads", flags->num_threads, flags->isa);
  command.footer(
      "MODEL is a GGUF file, a folder, a name, or a config.json alone.\n\n"
      "Examples:\n"
      "  dunlin plan model.gguf --context 8192 --batch 16\n"
      "  dunlin plan config.json --weights q4_k_m --memory 16G --output json");
  command.callback([flags, &invocation] { invocation.run = [flags] { return plan(*flags); }; });
}

}  // namespace dunlin::cli
