#include "cli/load_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <string_view>

namespace dunlin::cli {
namespace {

constexpr int kMostTokens = 1 << 20;
constexpr int kDefaultOutputLen = 128;

loadgen::WorkloadKind kind_of(const std::string& name) {
  return name == "shared-prefix" ? loadgen::WorkloadKind::kSharedPrefix
         : name == "sharegpt"    ? loadgen::WorkloadKind::kShareGpt
         : name == "replay"      ? loadgen::WorkloadKind::kReplay
                                 : loadgen::WorkloadKind::kRandom;
}

}  // namespace

Result<loadgen::LengthRange> parse_length_range(const std::string& text) {
  const auto number = [](std::string_view digits) {
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool is_whole = error == std::errc() && end == digits.data() + digits.size();
    return is_whole && value >= 1 && value <= kMostTokens ? value : 0;
  };
  const std::string_view all = text;
  const std::size_t colon = all.find(':');
  const int least = number(all.substr(0, colon));
  const int most = colon == all.npos ? least : number(all.substr(colon + 1));
  if (least == 0 || most < least)
    return invalid(
        fmt::format("'{}' is no length; write 512, or 32:1024 for any length between", text));
  return loadgen::LengthRange{least, most};
}

void add_load_flags(CLI::App& command, LoadFlags& flags) {
  loadgen::WorkloadSpec& spec = flags.spec;
  const auto tokens = CLI::Range(0, kMostTokens);
  command
      .add_option("--workload,--dataset-name", flags.workload,
                  "random, shared-prefix, sharegpt (its lengths, or --dataset), replay (--dataset)")
      ->check(CLI::IsMember({"random", "shared-prefix", "sharegpt", "replay"}))
      ->capture_default_str();
  command.add_option("--dataset,--dataset-path", spec.dataset,
                     "sharegpt: ShareGPT's JSON; replay: JSON lines with arrival_s, prompt (or "
                     "messages, prompt_len) and max_tokens");
  command.add_option("-n,--num-requests,--num-prompts", spec.num_requests, "Requests in all")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command
      .add_option("--input-len,--random-input-len", flags.input_len,
                  "Tokens of a prompt (behind the prefix): 512, or 32:1024 for any between")
      ->capture_default_str();
  command.add_option("--output-len,--random-output-len", flags.output_len,
                     "Tokens of an answer at most, likewise (default: 128, or what the dataset "
                     "says)");
  command
      .add_option("--prefix-len,--random-prefix-len", spec.prefix_len,
                  "Tokens that prompts have in common (shared-prefix: 2000 unless said)")
      ->check(tokens);
  command.add_option("--num-prefixes", spec.num_prefixes, "Different prefixes")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command.add_option("--seed", spec.seed, "The same seed asks the same")->capture_default_str();
}

Result<loadgen::WorkloadSpec> workload_spec(const LoadFlags& flags) {
  loadgen::WorkloadSpec spec = flags.spec;
  spec.kind = kind_of(flags.workload);
  auto input = parse_length_range(flags.input_len);
  if (!input) return tl::unexpected(input.error().with_prefix("--input-len"));
  spec.input_len = *input;
  spec.output_len = {kDefaultOutputLen, kDefaultOutputLen};
  spec.has_output_len = !flags.output_len.empty();
  if (spec.has_output_len) {
    auto output = parse_length_range(flags.output_len);
    if (!output) return tl::unexpected(output.error().with_prefix("--output-len"));
    spec.output_len = *output;
  }
  const bool reads_dataset =
      spec.kind == loadgen::WorkloadKind::kShareGpt || spec.kind == loadgen::WorkloadKind::kReplay;
  if (!reads_dataset && !spec.dataset.empty())
    return invalid(
        fmt::format("--dataset is for --workload sharegpt or replay, not {}", flags.workload));
  if (spec.kind == loadgen::WorkloadKind::kReplay && spec.dataset.empty())
    return invalid("--workload replay needs --dataset FILE, a JSON line for each request");
  constexpr int kDefaultPrefixLen = 2000;
  if (spec.kind == loadgen::WorkloadKind::kSharedPrefix && spec.prefix_len == 0)
    spec.prefix_len = kDefaultPrefixLen;
  return spec;
}

}  // namespace dunlin::cli
