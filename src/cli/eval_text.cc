#include "cli/eval_text.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/eval_flags.h"
#include "eval/kld.h"
#include "eval/perplexity.h"

namespace dunlin::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

struct TextFlags : EvalFlags {
  std::string file;
  int num_chunks = 0;
  int long_text = 0;  // tokens of one text; 0: chunks
};

struct KldFlags : TextFlags {
  std::string against_model, against_isa, against_type;
};

std::string chunk_words(int num_chunks, int context, std::int64_t num_scored) {
  return fmt::format("{} chunk{} of {} tokens, {} scored", num_chunks, num_chunks == 1 ? "" : "s",
                     grouped(context), grouped(num_scored));
}

Result<eval::Chunks> cut(const Session& session, const std::string& text, const TextFlags& flags) {
  auto chunks =
      eval::cut_into_chunks(session.tokenizer(), text, session.context_length(), flags.num_chunks);
  if (!chunks) return tl::unexpected(chunks.error().with_prefix(flags.file));
  return chunks;
}

constexpr int kStretch = 4096;

// How a text is foretold as it grows.
Outcome run_long_text(TextFlags flags) {
  EngineConfig& engine = flags.session.session.engine;
  engine.max_seqs = 1;
  eval::configure_scoring(engine, 0);
  DUNLIN_ASSIGN(text, read_text(flags.file));
  DUNLIN_ASSIGN(session, open_for_eval(flags.session));
  EvalBar bar("scoring", flags);
  const Clock::time_point start = Clock::now();
  DUNLIN_ASSIGN(found, eval::measure_stretches(session->engine(), session->tokenizer(), text,
                                               flags.long_text, kStretch, bar.progress()));
  const double seconds = seconds_since(start);
  const std::string policy = to_string(session->engine().config().kv_policy);
  if (flags.is_json()) {
    Json rows = Json::array();
    for (const eval::Stretch& stretch : found) {
      const eval::Estimate perplexity = eval::exp_of(stretch.nll);
      rows.push_back({{"begin", stretch.begin},
                      {"end", stretch.end},
                      {"perplexity", perplexity.value},
                      {"perplexity_error", perplexity.error}});
    }
    const Json json{{"model", session->config().model_name},
                    {"file", flags.file},
                    {"kv_policy", policy},
                    {"num_tokens", flags.long_text},
                    {"stretches", std::move(rows)},
                    {"elapsed_time", seconds}};
    fmt::print("{}\n", json.dump(2));
    return {};
  }
  fmt::print("perplexity of one text under {}, by its tokens\n", policy);
  for (const eval::Stretch& stretch : found) {
    const eval::Estimate perplexity = eval::exp_of(stretch.nll);
    fmt::print("{:>9} - {:>9}  {:.4f} +/- {:.4f}\n", grouped(stretch.begin), grouped(stretch.end),
               perplexity.value, perplexity.error);
  }
  fmt::print("{:.1f} s, {:.0f} tokens/s\n", seconds, flags.long_text / seconds);
  return {};
}

Outcome run_perplexity(TextFlags flags) {
  if (flags.long_text > 0) return run_long_text(std::move(flags));
  EngineConfig& engine = flags.session.session.engine;
  eval::configure_scoring(engine, engine.max_context);
  DUNLIN_ASSIGN(text, read_text(flags.file));
  DUNLIN_ASSIGN(session, open_for_eval(flags.session));
  DUNLIN_ASSIGN(chunks, cut(*session, text, flags));
  EvalBar bar("scoring", flags);
  const Clock::time_point start = Clock::now();
  DUNLIN_ASSIGN(found, eval::measure_perplexity(session->engine(), chunks, bar.progress()));
  const double seconds = seconds_since(start);
  const double speed = static_cast<double>(found.num_chunks) * chunks.context / seconds;
  const eval::Estimate perplexity = eval::exp_of(found.nll);
  if (flags.is_json()) {
    const Json json{{"model", session->config().model_name},
                    {"file", flags.file},
                    {"context", chunks.context},
                    {"num_chunks", found.num_chunks},
                    {"num_scored_tokens", found.num_scored},
                    {"perplexity", perplexity.value},
                    {"perplexity_error", perplexity.error},
                    {"mean_nll", found.nll.value},
                    {"mean_nll_error", found.nll.error},
                    {"elapsed_time", seconds},
                    {"tokens_per_second", speed}};
    fmt::print("{}\n", json.dump(2));
    return {};
  }
  fmt::print("perplexity: {:.4f} +/- {:.4f}\n", perplexity.value, perplexity.error);
  fmt::print("{}; {:.1f} s, {:.0f} tokens/s\n",
             chunk_words(found.num_chunks, chunks.context, found.num_scored), seconds, speed);
  return {};
}

void print_kld(const eval::Divergence& found, const KldFlags& flags, int context, double seconds) {
  const eval::Estimate base = eval::exp_of(found.base_nll), measured = eval::exp_of(found.nll);
  const eval::Estimate ratio = eval::exp_of(found.nll_difference);
  if (flags.is_json()) {
    const Json json{{"model", flags.session.model},
                    {"file", flags.file},
                    {"context", context},
                    {"num_chunks", found.num_chunks},
                    {"num_scored_tokens", found.num_positions},
                    {"mean_kld", found.kld.value},
                    {"mean_kld_error", found.kld.error},
                    {"median_kld", found.median},
                    {"p99_kld", found.percentile_99},
                    {"p99_9_kld", found.percentile_99_9},
                    {"max_kld", found.maximum},
                    {"same_top", found.same_top.value},
                    {"same_top_error", found.same_top.error},
                    {"perplexity", measured.value},
                    {"perplexity_error", measured.error},
                    {"base_perplexity", base.value},
                    {"base_perplexity_error", base.error},
                    {"perplexity_ratio", ratio.value},
                    {"perplexity_ratio_error", ratio.error},
                    {"elapsed_time", seconds}};
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print(
      "KLD: {:.6f} +/- {:.6f}; median {:.6f}, 99% {:.6f}, 99.9% {:.6f}, maximum {:.6f}\n"
      "same top token: {:.2f}% +/- {:.2f}%\n"
      "perplexity: {:.4f} +/- {:.4f}, of the other {:.4f} +/- {:.4f}, ratio {:.5f} +/- {:.5f}\n"
      "{}; {:.1f} s\n",
      found.kld.value, found.kld.error, found.median, found.percentile_99, found.percentile_99_9,
      found.maximum, 100 * found.same_top.value, 100 * found.same_top.error, measured.value,
      measured.error, base.value, base.error, ratio.value, ratio.error,
      chunk_words(found.num_chunks, context, found.num_positions), seconds);
}

// The measured side's settings, but for what the flags say of the other.
Result<SessionFlags> other_side(const KldFlags& flags) {
  SessionFlags other = flags.session;
  if (!flags.against_model.empty()) other.model = flags.against_model;
  if (!flags.against_isa.empty()) other.session.isa = flags.against_isa;
  if (!flags.against_type.empty()) other.session.kv_formats = *find_kv_format(flags.against_type);
  if (other.model == flags.session.model && other.session.isa == flags.session.session.isa &&
      other.session.kv_formats == flags.session.session.kv_formats)
    return invalid(
        "there is nothing to compare: both sides are the same; name another model, kernels or "
        "cache with --against-model, --against-isa or --against");
  return other;
}

Outcome run_kld(KldFlags flags) {
  EngineConfig& engine = flags.session.session.engine;
  eval::configure_scoring(engine, engine.max_context);
  DUNLIN_ASSIGN(other, other_side(flags));
  DUNLIN_ASSIGN(text, read_text(flags.file));
  DUNLIN_ASSIGN(measured, open_for_eval(flags.session));
  DUNLIN_ASSIGN(base, open_for_eval(other));
  DUNLIN_ASSIGN(chunks, cut(*measured, text, flags));
  DUNLIN_ASSIGN(base_chunks, cut(*base, text, flags));
  if (chunks.ids != base_chunks.ids)
    return invalid(
        fmt::format("{} and {} cut the text into different tokens; only models with the "
                    "same tokenizer can be compared",
                    flags.session.model, other.model));
  EvalBar bar("comparing", flags);
  const Clock::time_point start = Clock::now();
  DUNLIN_ASSIGN(
      found, eval::measure_divergence(base->engine(), measured->engine(), chunks, bar.progress()));
  print_kld(found, flags, chunks.context, seconds_since(start));
  return {};
}

CLI::App& add_text_command(CLI::App& eval, const char* name, const char* help, TextFlags& flags) {
  CLI::App& command = add_eval_command(eval, name, help, flags);
  set_chunk_option(command, flags.session.session.engine);
  command.add_option("FILE", flags.file, "A text; - for standard input")->required();
  command.add_option("--chunks", flags.num_chunks, "Only so many chunks (default: all)")
      ->check(CLI::Range(1, 1 << 30));
  return command;
}

}  // namespace

void add_eval_perplexity(CLI::App& eval, Invocation& invocation) {
  auto flags = std::make_shared<TextFlags>();
  CLI::App& command =
      add_text_command(eval, "perplexity", "How well a model foretells a text", *flags);
  command
      .add_option("--long", flags->long_text,
                  "One text of so many tokens instead of chunks; perplexity of each 4,096")
      ->check(CLI::Range(4, 1 << 20));
  command.footer(
      "Chunks, scored tokens and the error are llama-perplexity's, so that figures compare.\n"
      "--long shows what --kv-policy makes of a text longer than the model's context.\n\n"
      "Example:\n  dunlin eval perplexity smollm2-135m text.txt --chunks 20");
  command.callback([flags, &invocation] {
    invocation.run = [flags] { return exit_code(run_perplexity(*flags)); };
  });
}

void add_eval_kld(CLI::App& eval, Invocation& invocation) {
  auto flags = std::make_shared<KldFlags>();
  CLI::App& command = add_text_command(
      eval, "kld", "How far a model's distributions are from another setting's", *flags);
  command.add_option("--against-model", flags->against_model,
                     "The other side's model, with the same tokenizer (default: MODEL)");
  command.add_option("--against-isa", flags->against_isa,
                     "The other side's kernels: as --isa (default: the same)");
  command
      .add_option("--against", flags->against_type,
                  "The other side's type of cached keys and values: as --cache-type-k (default: "
                  "the same)")
      ->check(CLI::IsMember(kv_format_names()));
  command.footer(
      "The Kullback-Leibler divergence of the next token's distribution, the other side's from "
      "this\none's, over the tokens that eval perplexity scores. All flags are of both sides, but "
      "for those\nthat begin with --against.\n\n"
      "Examples:\n  dunlin eval kld smollm2-135m text.txt --against-isa reference --chunks 4\n"
      "  dunlin eval kld smollm2-135m text.txt --cache-type-k int8 --cache-type-v int8 --against "
      "f16");
  command.callback(
      [flags, &invocation] { invocation.run = [flags] { return exit_code(run_kld(*flags)); }; });
}

}  // namespace dunlin::cli
