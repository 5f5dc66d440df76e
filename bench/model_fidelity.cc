// How far the fast path of a model is from float activations on the same weights and text:
//   model_fidelity MODEL.gguf TEXT [--chunks 20] [--isa auto] [--context 512]
//
// The text is cut into chunks as llama.cpp's perplexity tool cuts it (its ids in a row, BOS in
// place of a chunk's first where the model has one), so that perplexities can be held against that
// tool's: the second half of each chunk is scored. The divergence is that of the two next-token
// distributions at every position, KL(float || fast), keys and values in f16 for both.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "model/open_model.h"
#include "model/single_sequence.h"
#include "text/tokenizer_factory.h"

namespace dunlin {
namespace {

struct Flags {
  std::string model, text;
  std::string isa = "auto";
  int chunks = 20;
  int context = 512;
};

[[noreturn]] void fail_with(const Status& status) {
  std::fprintf(stderr, "model_fidelity: %s\n", status.message().c_str());
  std::exit(1);
}

template <typename T>
T value_or_exit(Result<T> result) {
  if (!result) fail_with(result.error());
  return std::move(*result);
}

double log_normaliser(std::span<const float> row) {
  const float top = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x) - top);
  return top + std::log(sum);
}

struct Totals {
  double fast_nll = 0, float_nll = 0;
  std::int64_t num_scored = 0, num_same_top = 0;
  std::vector<double> divergences;

  void add_position(std::span<const float> exact, std::span<const float> fast) {
    const double exact_norm = log_normaliser(exact), fast_norm = log_normaliser(fast);
    double sum = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double log_p = exact[i] - exact_norm;
      sum += std::exp(log_p) * (log_p - (fast[i] - fast_norm));
    }
    divergences.push_back(sum);
    const auto top = [](std::span<const float> row) {
      return std::max_element(row.begin(), row.end()) - row.begin();
    };
    num_same_top += top(exact) == top(fast);
  }

  void add_scored(std::span<const float> exact, std::span<const float> fast, TokenId next) {
    const auto id = static_cast<std::size_t>(next);
    float_nll += log_normaliser(exact) - exact[id];
    fast_nll += log_normaliser(fast) - fast[id];
    ++num_scored;
  }

  void print() {
    std::sort(divergences.begin(), divergences.end());
    const auto count = static_cast<double>(divergences.size());
    const double mean = std::accumulate(divergences.begin(), divergences.end(), 0.0) / count;
    const auto at = static_cast<std::size_t>(0.999 * (count - 1));
    const double scored = static_cast<double>(num_scored);
    const double exact = std::exp(float_nll / scored), fast = std::exp(fast_nll / scored);
    std::printf("positions %zu, KLD mean %.3g, 99.9%% %.3g, same top token %.2f%%\n",
                divergences.size(), mean, divergences[at],
                100 * static_cast<double>(num_same_top) / count);
    std::printf("perplexity of %.0f tokens: float activations %.4f, fast %.4f (%+.3f%%)\n", scored,
                exact, fast, 100 * (fast / exact - 1));
  }
};

std::vector<TokenId> chunk_ids(const std::vector<TokenId>& all, int chunk, const Flags& flags,
                               const Tokenizer& tokenizer) {
  const auto first = all.begin() + std::ptrdiff_t{chunk} * flags.context;
  std::vector<TokenId> ids(first, first + flags.context);
  if (!tokenizer.prefix_ids().empty()) ids[0] = tokenizer.prefix_ids()[0];
  return ids;
}

void run(const Flags& flags) {
  LoadOptions options;
  options.isa = value_or_exit(parse_isa(flags.isa));
  OpenedModel fast = value_or_exit(open_model(flags.model, options));
  options.isa = Isa::kReference;
  OpenedModel exact = value_or_exit(open_model(flags.model, options));
  const auto tokenizer = value_or_exit(make_tokenizer(*fast.file));

  std::ifstream file(flags.text, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<TokenId> ids(tokenizer->prefix_ids().begin(), tokenizer->prefix_ids().end());
  const std::vector<TokenId> rest = tokenizer->encode(text);
  ids.insert(ids.end(), rest.begin(), rest.end());
  const int chunks = std::min(flags.chunks, static_cast<int>(ids.size()) / flags.context);
  if (chunks == 0) fail_with(Status(StatusCode::kInvalidArgument, flags.text + " is too short"));

  std::vector<std::int32_t> wanted(static_cast<std::size_t>(flags.context) - 1);
  std::iota(wanted.begin(), wanted.end(), 0);
  const auto vocab_size = static_cast<std::size_t>(fast.model->limits().vocab_size);
  std::vector<float> rows(wanted.size() * vocab_size);
  SingleSequence fast_sequence(*fast.model, flags.context);
  SingleSequence exact_sequence(*exact.model, flags.context);
  Totals totals;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    std::fprintf(stderr, "chunk %d of %d\n", chunk + 1, chunks);
    const std::vector<TokenId> input = chunk_ids(ids, chunk, flags, *tokenizer);
    fast_sequence.truncate(0);
    fast_sequence.append(input, wanted, [&](std::int32_t position, std::span<const float> row) {
      std::copy(row.begin(), row.end(), rows.begin() + std::ptrdiff_t{position} * std::ssize(row));
    });
    exact_sequence.truncate(0);
    exact_sequence.append(input, wanted, [&](std::int32_t position, std::span<const float> row) {
      const auto at = static_cast<std::size_t>(position);
      const std::span other = std::span(rows).subspan(at * vocab_size, vocab_size);
      totals.add_position(row, other);
      if (position >= flags.context / 2) totals.add_scored(row, other, input[at + 1]);
    });
  }
  totals.print();
}

}  // namespace
}  // namespace dunlin

int main(int argc, char** argv) {
  dunlin::Flags flags;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--chunks" && has_value)
      flags.chunks = std::atoi(argv[++i]);
    else if (arg == "--isa" && has_value)
      flags.isa = argv[++i];
    else if (arg == "--context" && has_value)
      flags.context = std::max(2, std::atoi(argv[++i]));
    else
      (flags.model.empty() ? flags.model : flags.text) = arg;
  }
  if (flags.text.empty()) {
    std::fprintf(stderr,
                 "usage: model_fidelity MODEL.gguf TEXT [--chunks N] [--isa NAME] [--context N]\n");
    return 2;
  }
  dunlin::run(flags);
  return 0;
}
