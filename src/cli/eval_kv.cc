#include "cli/eval_kv.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/eval_flags.h"
#include "cli/kv_setting.h"
#include "eval/decode_speed.h"
#include "eval/filler_text.h"
#include "eval/kld.h"
#include "eval/recall.h"
#include "eval/trade_off_plot.h"
#include "model/open_model.h"

namespace dunlin::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kUsualSettings =
    "f16;int8;int8:int4;int4;fp8_e4m3;window,window=128;h2o,budget=128;snapkv,budget=128;"
    "quest,budget=128";
constexpr int kDecodeTokens = 32;
constexpr int kTokensOfPair = 24;  // at most, with any vocabulary of words

struct KvFlags : EvalFlags {
  std::string file, settings = kUsualSettings, svg;
  int num_chunks = 4, num_pairs = 64, num_queries = 32;
  std::vector<int> depths;
};

// What was found of one setting.
struct Row {
  KvSetting setting;
  double bytes_per_token = 0;
  double share = 0;  // of f16 with the full policy
  eval::Divergence divergence;
  eval::RecallRow recall;
  std::vector<double> tokens_per_s;  // behind each of the depths
};

// Where everything is measured: the text in tokens, and f16 with the full policy.
struct Bench {
  KvFlags flags;
  ModelConfig model;
  std::unique_ptr<Session> base;
  eval::Chunks chunks;
  std::vector<TokenId> long_text;

  double bytes_per_token(const KvSetting& setting) const {
    const int context = chunks.context;
    return static_cast<double>(
               kv_bytes_held(kv_layout(model, setting.formats), setting.policy, context)) /
           context;
  }
};

std::string filler(int num_tokens) {
  std::string text;
  for (std::uint64_t i = 0; text.size() < std::size_t{8} * static_cast<std::size_t>(num_tokens);
       ++i)
    text += eval::filler_sentence(0, 0, i) + " ";
  return text;
}

// A session with the flags' model that keeps its cache so.
Result<std::unique_ptr<Session>> open_with(const KvFlags& flags, const KvSetting& setting) {
  SessionFlags session = flags.session;
  session.fetch.quiet = true;
  session.session.kv_formats = setting.formats;
  session.kv_policy = to_string(setting.policy);
  return open_for_eval(session);
}

// The tokens of the text, as often as it takes.
std::vector<TokenId> repeated(const eval::Chunks& chunks, int num_tokens) {
  std::vector<TokenId> ids;
  while (static_cast<int>(ids.size()) < num_tokens)
    for (const auto& chunk : chunks.ids) ids.insert(ids.end(), chunk.begin(), chunk.end());
  ids.resize(static_cast<std::size_t>(num_tokens));
  return ids;
}

Result<Bench> prepare(KvFlags flags) {
  EngineConfig& engine = flags.session.session.engine;
  const int chunk = engine.max_context;
  eval::configure_scoring(engine, chunk);
  int deepest = 0;
  for (const int depth : flags.depths) deepest = std::max(deepest, depth + kDecodeTokens + 1);
  engine.max_context = std::max({chunk, deepest, kTokensOfPair * flags.num_pairs});
  DUNLIN_ASSIGN(text, flags.file.empty() ? Result<std::string>(filler(chunk * flags.num_chunks))
                                         : read_text(flags.file));
  Bench bench;
  bench.flags = flags;
  DUNLIN_ASSIGN(base, open_with(flags, {"f16", {}, {}}));
  bench.base = std::move(base);
  DUNLIN_ASSIGN(described, describe_model(bench.base->config().model_path));
  bench.model = std::move(described.config);
  auto chunks = eval::cut_into_chunks(bench.base->tokenizer(), text, chunk, flags.num_chunks);
  if (!chunks) return tl::unexpected(chunks.error().with_prefix(flags.file));
  bench.chunks = std::move(*chunks);
  bench.long_text = repeated(bench.chunks, std::max(deepest, 1));
  return bench;
}

Result<Row> measure(const Bench& bench, const KvSetting& setting, const eval::Progress& progress) {
  DUNLIN_ASSIGN(session, open_with(bench.flags, setting));
  Row row;
  row.setting = setting;
  row.bytes_per_token = bench.bytes_per_token(setting);
  row.share = row.bytes_per_token / bench.bytes_per_token({"f16", {}, {}});
  DUNLIN_ASSIGN(divergence, eval::measure_divergence(bench.base->engine(), session->engine(),
                                                     bench.chunks, progress));
  row.divergence = divergence;
  if (bench.flags.num_pairs > 0) {
    eval::RecallOptions options;
    options.num_pairs = {bench.flags.num_pairs};
    options.num_samples = 1;
    options.num_queries = bench.flags.num_queries;
    DUNLIN_ASSIGN(recalls, eval::measure_recall(*session, options, progress));
    row.recall = recalls[0];
  }
  for (const int depth : bench.flags.depths) {
    const auto prompt = std::span(bench.long_text).first(static_cast<std::size_t>(depth));
    DUNLIN_ASSIGN(speed, eval::measure_decode_speed(session->engine(), prompt,
                                                    {.num_tokens = kDecodeTokens}, progress));
    row.tokens_per_s.push_back(speed);
  }
  return row;
}

Result<Row> measure_with_bar(const Bench& bench, const KvSetting& setting) {
  EvalBar bar(setting.name.c_str(), bench.flags);
  auto row = measure(bench, setting, bar.progress());
  if (!row) return tl::unexpected<Status>(row.error().with_prefix(setting.name));
  return row;
}

void print_header(const Bench& bench) {
  fmt::print("{}: {} x {} tokens; recall of {} lines\n", bench.base->config().model_name,
             bench.chunks.ids.size(), grouped(bench.chunks.context), bench.flags.num_pairs);
  fmt::print("{:<26} {:>9} {:>7} {:>10} {:>8} {:>9} {:>9} {:>8} {:>7}", "setting", "B/token",
             "of f16", "perplexity", "ratio", "KLD", "99.9%", "same top", "recall");
  for (const int depth : bench.flags.depths) fmt::print(" {:>13}", "t/s at " + grouped(depth));
  fmt::print("\n");
  std::fflush(stdout);
}

void print_row(const Row& row, const KvFlags& flags) {
  const eval::Divergence& found = row.divergence;
  fmt::print("{:<26} {:>9} {:>6.1f}% {:>10.3f} {:>8.4f} {:>9.6f} {:>9.5f} {:>7.2f}% {:>7}",
             row.setting.name, grouped(std::llround(row.bytes_per_token)), 100 * row.share,
             eval::exp_of(found.nll).value, eval::exp_of(found.nll_difference).value,
             found.kld.value, found.percentile_99_9, 100 * found.same_top.value,
             flags.num_pairs > 0 ? fmt::format("{:.1f}%", 100 * row.recall.recall.value) : "-");
  for (const double speed : row.tokens_per_s) fmt::print(" {:>13.1f}", speed);
  fmt::print("\n");
  std::fflush(stdout);
}

Json row_json(const Row& row, const KvFlags& flags) {
  const eval::Divergence& found = row.divergence;
  const eval::Estimate perplexity = eval::exp_of(found.nll);
  const eval::Estimate ratio = eval::exp_of(found.nll_difference);
  Json json{{"setting", row.setting.name},
            {"cache_type_k", kv_format_info(row.setting.formats.k).name},
            {"cache_type_v", kv_format_info(row.setting.formats.v).name},
            {"kv_policy", to_string(row.setting.policy)},
            {"bytes_per_token", row.bytes_per_token},
            {"share_of_f16", row.share},
            {"perplexity", perplexity.value},
            {"perplexity_error", perplexity.error},
            {"perplexity_ratio", ratio.value},
            {"perplexity_ratio_error", ratio.error},
            {"mean_kld", found.kld.value},
            {"mean_kld_error", found.kld.error},
            {"p99_9_kld", found.percentile_99_9},
            {"same_top", found.same_top.value}};
  if (flags.num_pairs > 0) {
    json["recall"] = row.recall.recall.value;
    json["recall_error"] = row.recall.recall.error;
  }
  Json speeds = Json::array();
  for (std::size_t i = 0; i < row.tokens_per_s.size(); ++i)
    speeds.push_back({{"depth", flags.depths[i]}, {"tokens_per_second", row.tokens_per_s[i]}});
  json["decode"] = std::move(speeds);
  return json;
}

std::string plot(const std::vector<Row>& rows, const std::string& model) {
  eval::TradeOffPlot plot;
  plot.title = model + ": what ways to keep the KV cache cost";
  plot.memory_title = "memory of a text, of f16's";
  plot.quality_title = "divergence from f16 (KLD, nats)";
  for (const Row& row : rows)
    plot.points.push_back({row.setting.name, row.share, row.divergence.kld.value});
  return eval::trade_off_svg(plot);
}

Outcome run_kv(const KvFlags& flags) {
  auto settings = parse_kv_settings(flags.settings);
  if (!settings) return tl::unexpected<Status>(settings.error().with_prefix("--settings"));
  DUNLIN_ASSIGN(bench, prepare(flags));
  std::vector<Row> rows;
  if (!flags.is_json()) print_header(bench);
  for (const KvSetting& setting : *settings) {
    DUNLIN_ASSIGN(row, measure_with_bar(bench, setting));
    rows.push_back(std::move(row));
    if (!flags.is_json()) print_row(rows.back(), flags);
  }
  const std::string& model = bench.base->config().model_name;
  if (!flags.svg.empty()) DUNLIN_TRY(write_asked_file("--svg", flags.svg, plot(rows, model)));
  if (!flags.is_json()) return {};
  Json list = Json::array();
  for (const Row& row : rows) list.push_back(row_json(row, flags));
  const Json json{{"model", model},
                  {"file", flags.file},
                  {"context", bench.chunks.context},
                  {"num_chunks", bench.chunks.ids.size()},
                  {"pairs", flags.num_pairs},
                  {"rows", std::move(list)}};
  fmt::print("{}\n", json.dump(2));
  return {};
}

}  // namespace

void add_eval_kv(CLI::App& eval, Invocation& invocation) {
  auto flags = std::make_shared<KvFlags>();
  CLI::App& command = add_eval_command(
      eval, "kv", "Every way to keep the KV cache beside f16: memory, quality, speed", *flags);
  set_chunk_option(command, flags->session.session.engine);
  for (const char* name : {"--cache-type-k", "--cache-type-v", "--kv-policy"})
    command.remove_option(command.get_option(name));
  command.add_option("FILE", flags->file, "A text (default: sentences that say little)");
  command
      .add_option("--settings", flags->settings,
                  "What to compare, separated by semicolons: FORMAT or KEYS:VALUES, POLICY, or "
                  "FORMAT+POLICY")
      ->capture_default_str();
  command.add_option("--chunks", flags->num_chunks, "Chunks of text at most")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  command
      .add_option("--pairs", flags->num_pairs,
                  "Lines of the list that eval recall would make; 0: none")
      ->check(CLI::Range(0, 1 << 16))
      ->capture_default_str();
  command.add_option("--queries", flags->num_queries, "Names asked for")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  add_list(command, "--depths", flags->depths,
           "Also the speed of decoding behind so many tokens, comma separated", 1, 1 << 20);
  command.add_option("--svg", flags->svg, "Draws memory and divergence into this file");
  command.footer(
      "Divergence is that of eval kld, from a cache of f16 that every token reads whole; memory is "
      "that\nof a sequence of --context tokens.\n\n"
      "Example:\n  dunlin eval kv qwen2.5-coder-0.5b bible.txt -c 4096 --depths 8192,32768 --svg "
      "kv.svg");
  command.callback(
      [flags, &invocation] { invocation.run = [flags] { return exit_code(run_kv(*flags)); }; });
}

}  // namespace dunlin::cli
