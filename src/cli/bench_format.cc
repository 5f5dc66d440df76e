#include "cli/bench_format.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/version.h"

namespace dunlin::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string test_name(const BenchTest& test) {
  std::string name;
  if (test.n_prompt > 0) name += fmt::format("pp{}", test.n_prompt);
  if (test.n_gen > 0) name += fmt::format("{}tg{}", name.empty() ? "" : "+", test.n_gen);
  if (test.n_depth > 0) name += fmt::format(" @ d{}", test.n_depth);
  return name;
}

Json record(const BenchModel& model, const BenchResult& result) {
  Json samples_ns = Json::array(), samples_ts = Json::array();
  double mean_s = 0;
  for (const double s : result.seconds) {
    samples_ns.push_back(static_cast<std::int64_t>(s * 1e9));
    samples_ts.push_back(result.num_tokens() / s);
    mean_s += s / static_cast<double>(result.seconds.size());
  }
  double variance = 0;
  for (const double s : result.seconds) variance += (s - mean_s) * (s - mean_s);
  if (result.seconds.size() > 1) variance /= static_cast<double>(result.seconds.size() - 1);
  return {{"build_commit", version_text()},
          {"backends", model.backend},
          {"model_filename", model.path},
          {"model_type", model.type},
          {"model_size", model.size_bytes},
          {"model_n_params", model.num_params},
          {"n_threads", result.test.n_threads},
          {"n_prompt", result.test.n_prompt},
          {"n_gen", result.test.n_gen},
          {"n_depth", result.test.n_depth},
          {"test_time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
          {"avg_ns", static_cast<std::int64_t>(mean_s * 1e9)},
          {"stddev_ns", static_cast<std::int64_t>(std::sqrt(variance) * 1e9)},
          {"avg_ts", result.tokens_per_s_mean()},
          {"stddev_ts", result.tokens_per_s_stddev()},
          {"weight_gb_per_s", result.weight_bytes_per_s / 1e9},
          {"gop_per_s", result.ops_per_s / 1e9},
          {"samples_ns", samples_ns},
          {"samples_ts", samples_ts}};
}

std::string markdown(const BenchModel& model, std::span<const BenchResult> results) {
  std::string out = fmt::format(
      "| {:<30} | {:>10} | {:>10} | {:<10} | {:>7} | {:>15} | {:>20} | {:>7} | {:>7} |\n", "model",
      "size", "params", "backend", "threads", "test", "t/s", "GB/s", "GOP/s");
  out += fmt::format(
      "| {:-<30} | {:->9}: | {:->9}: | {:-<10} | {:->6}: | {:->14}: | {:->19}: | {:->6}: | {:->6}: "
      "|\n",
      "", "", "", "", "", "", "", "", "");
  double prefill_s = 0, decode_s = 0;
  for (const BenchResult& result : results) {
    out += fmt::format(
        "| {:<30} | {:>6.2f} MiB | {:>8.2f} M | {:<10} | {:>7} | {:>15} | {:>20} | {:>7.1f} | "
        "{:>7.1f} |\n",
        model.type, static_cast<double>(model.size_bytes) / (1 << 20),
        static_cast<double>(model.num_params) / 1e6, model.backend, result.test.n_threads,
        test_name(result.test),
        fmt::format("{:.2f} ± {:.2f}", result.tokens_per_s_mean(), result.tokens_per_s_stddev()),
        result.weight_bytes_per_s / 1e9, result.ops_per_s / 1e9);
    for (const double s : result.seconds) (result.test.n_gen == 0 ? prefill_s : decode_s) += s;
  }
  if (prefill_s + decode_s > 0)
    out += fmt::format(
        "\ntime: {:.0f}% prefill, {:.0f}% decode. GB/s: weights read; GOP/s: operations of the "
        "linear layers.\n",
        100 * prefill_s / (prefill_s + decode_s), 100 * decode_s / (prefill_s + decode_s));
  return out;
}

std::string csv(const BenchModel& model, std::span<const BenchResult> results) {
  std::string out;
  for (const BenchResult& result : results) {
    Json fields = record(model, result);
    fields.erase("samples_ns");
    fields.erase("samples_ts");
    std::string names, values;
    for (const auto& [name, value] : fields.items()) {
      std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2)
        text.insert(at, 1, '"');
      names += (names.empty() ? "" : ",") + name;
      values += fmt::format("{}\"{}\"", values.empty() ? "" : ",", text);
    }
    out += (out.empty() ? names + "\n" : "") + values + "\n";
  }
  return out;
}

}  // namespace

std::string format_bench(const BenchModel& model, std::span<const BenchResult> results,
                         BenchOutput output) {
  if (output == BenchOutput::kMarkdown) return markdown(model, results);
  if (output == BenchOutput::kCsv) return csv(model, results);
  Json list = Json::array();
  for (const BenchResult& result : results) list.push_back(record(model, result));
  return list.dump(2) + "\n";
}

std::string format_machine(const std::string& backend, std::span<const MachineLimits> rows,
                           BenchOutput output) {
  if (output == BenchOutput::kJson) {
    Json all = Json::array();
    for (const MachineLimits& row : rows) {
      all.push_back({{"build_commit", version_text()},
                     {"backends", backend},
                     {"n_threads", row.num_threads},
                     {"read_gb_per_s", row.read_bytes_per_s / 1e9},
                     {"int8_unsigned_gop_per_s", row.int8_unsigned_ops / 1e9},
                     {"int8_signed_gop_per_s", row.int8_signed_ops / 1e9},
                     {"float_gflop_per_s", row.float_ops / 1e9}});
    }
    return all.dump(2) + "\n";
  }
  const bool csv = output == BenchOutput::kCsv;
  std::string out =
      csv ? "backends,n_threads,read_gb_per_s,int8_unsigned_gop_per_s,int8_signed_gop_per_s,"
            "float_gflop_per_s\n"
          : "| backend    | threads | read GB/s | int8 u*s GOP/s | int8 s*s GOP/s | float GFLOP/s "
            "|\n"
            "| ---------- | ------: | --------: | -------------: | -------------: | ------------: "
            "|\n";
  for (const MachineLimits& row : rows) {
    out += fmt::format(fmt::runtime(csv ? "{},{},{:.2f},{:.1f},{:.1f},{:.1f}\n"
                                        : "| {:<10} | {:>7} | {:>9.1f} | {:>14.0f} | {:>14.0f} | "
                                          "{:>13.0f} |\n"),
                       backend, row.num_threads, row.read_bytes_per_s / 1e9,
                       row.int8_unsigned_ops / 1e9, row.int8_signed_ops / 1e9, row.float_ops / 1e9);
  }
  return out;
}

std::string batched_header() {
  std::string out = fmt::format(
      "|{:>6} | {:>6} | {:>4} | {:>6} | {:>8} | {:>8} | {:>8} | {:>8} | {:>8} | {:>8} |\n", "PP",
      "TG", "B", "N_KV", "T_PP s", "S_PP t/s", "T_TG s", "S_TG t/s", "T s", "S t/s");
  return out +
         fmt::format(
             "|{:->7}|{:->8}|{:->6}|{:->8}|{:->10}|{:->10}|{:->10}|{:->10}|{:->10}|{:->10}|\n", "",
             "", "", "", "", "", "", "", "", "");
}

std::string format_batched(const BatchedResult& r) {
  const int prompt = r.n_prompt * r.n_seqs, generated = r.n_gen * r.n_seqs;
  const double total = r.prefill_s + r.decode_s;
  return fmt::format(
      "|{:>6} | {:>6} | {:>4} | {:>6} | {:>8.3f} | {:>8.2f} | {:>8.3f} | {:>8.2f} | {:>8.3f} | "
      "{:>8.2f} |\n",
      r.n_prompt, r.n_gen, r.n_seqs, prompt + generated, r.prefill_s, prompt / r.prefill_s,
      r.decode_s, generated / r.decode_s, total, (prompt + generated) / total);
}

std::string format_batched_jsonl(int n_threads, const BatchedResult& r) {
  const int prompt = r.n_prompt * r.n_seqs, generated = r.n_gen * r.n_seqs;
  const double total = r.prefill_s + r.decode_s;
  const Json line = {{"n_threads", n_threads},
                     {"pp", r.n_prompt},
                     {"tg", r.n_gen},
                     {"pl", r.n_seqs},
                     {"n_kv", prompt + generated},
                     {"t_pp", r.prefill_s},
                     {"speed_pp", prompt / r.prefill_s},
                     {"t_tg", r.decode_s},
                     {"speed_tg", generated / r.decode_s},
                     {"t", total},
                     {"speed", (prompt + generated) / total},
                     {"weight_gb_per_s", r.weight_bytes_per_s / 1e9},
                     {"gop_per_s", r.ops_per_s / 1e9}};
  return line.dump() + "\n";
}

}  // namespace dunlin::cli
