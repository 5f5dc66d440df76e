#include "eval/needle.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "eval/draws.h"
#include "eval/filler_text.h"

namespace dunlin::eval {
namespace {

constexpr int kAnswerTokens = 24;
constexpr std::uint32_t kFactStream = 0x80000000u;  // texts have lower ones

constexpr std::string_view kColours[] = {"silver",  "amber",  "crimson", "golden",
                                         "violet",  "copper", "scarlet", "ivory",
                                         "emerald", "orange", "purple",  "azure"};
constexpr std::string_view kAnimals[] = {"heron",  "otter",  "badger", "falcon",
                                         "salmon", "beetle", "rabbit", "turtle",
                                         "walrus", "spider", "monkey", "lizard"};
constexpr std::string_view kNames[] = {"Mara", "Jonas", "Edda", "Felix", "Alma", "Oskar"};

constexpr std::string_view kIntroduction =
    "Somewhere in the text below one important piece of information is hidden. Find it and "
    "remember it; you will be asked about it at the end.";

// The text with the fact behind the first `depth` of its sentences.
std::string haystack(const std::vector<std::string>& sentences, std::size_t count, double depth,
                     const std::string& needle) {
  const auto before = static_cast<std::size_t>(std::lround(depth * static_cast<double>(count)));
  std::string text(kIntroduction);
  text += "\n\n";
  for (std::size_t i = 0; i <= count; ++i) {
    if (i == before) text += needle + ' ';
    if (i < count) text += sentences[i] + ' ';
  }
  text.pop_back();
  return text;
}

// A cell has the same facts whatever else the grid holds.
std::uint64_t fact_item(int sample, int length, double depth) {
  return static_cast<std::uint64_t>(sample) << 48 | static_cast<std::uint64_t>(length) << 16 |
         static_cast<std::uint64_t>(std::lround(depth * 1000));
}

}  // namespace

Fact draw_fact(NeedleTask task, std::uint64_t seed, std::uint64_t item) {
  Draws draws(seed, kFactStream, item);
  if (task == NeedleTask::kPasskey) {
    const std::string key = std::to_string(10000 + draws.below(90000));
    return {fmt::format("The pass key is {}. Remember it: the pass key is {}.", key, key),
            "What is the pass key that is hidden in the text?", "The pass key is", key};
  }
  const std::string_view name = draws.one_of(kNames);
  const std::string words = fmt::format("{} {}", draws.one_of(kColours), draws.one_of(kAnimals));
  return {fmt::format("The secret words of {} are {}.", name, words),
          fmt::format("What are the secret words of {}?", name),
          fmt::format("The secret words of {} are", name), words};
}

Result<std::vector<TokenId>> needle_prompt(const Session& session, const Fact& fact,
                                           std::uint64_t seed, std::uint32_t stream, double depth,
                                           int max_tokens, bool as_chat) {
  std::vector<std::string> sentences;
  const auto prompt_with = [&](std::size_t count) {
    return task_prompt(
        session,
        {haystack(sentences, count, depth, fact.sentence), fact.question, fact.answer_start},
        as_chat);
  };
  DUNLIN_ASSIGN(bare, prompt_with(0));
  const auto most = static_cast<std::size_t>(std::max(max_tokens, 0));
  for (std::size_t num_tokens = bare.size(); num_tokens <= most;) {
    sentences.push_back(filler_sentence(seed, stream, sentences.size()));
    num_tokens += session.tokenizer().encode(" " + sentences.back()).size();
  }
  // Borders of sentences may cost a token more or less than was counted.
  for (std::size_t count = sentences.size(); count > 0; --count) {
    DUNLIN_ASSIGN(prompt, prompt_with(count));
    if (prompt.size() <= most) return prompt;
  }
  return invalid(fmt::format("{} tokens hold no text around what is hidden; that takes {} and more",
                             max_tokens + kAnswerTokens, bare.size() + kAnswerTokens));
}

double NeedleGrid::share_of_length(std::size_t length_idx) const {
  double sum = 0;
  for (std::size_t d = 0; d < depths.size(); ++d) sum += share(d, length_idx);
  return sum / static_cast<double>(depths.size());
}

double NeedleGrid::share_of_all() const {
  double sum = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) sum += share_of_length(i);
  return sum / static_cast<double>(lengths.size());
}

Result<NeedleGrid> measure_needles(Session& session, const NeedleOptions& options,
                                   const Progress& progress) {
  struct Needle {
    std::size_t cell = 0;
    Fact fact;
    std::vector<TokenId> prompt;
  };
  const std::size_t num_lengths = options.lengths.size();
  NeedleGrid grid{options.lengths, options.depths, options.num_samples, {}};
  grid.num_found.assign(options.depths.size() * num_lengths, 0);
  std::vector<Needle> needles;
  // The longest text with the deepest fact first: the prefix cache then knows what the others have
  // in front of theirs.
  for (int sample = 0; sample < options.num_samples; ++sample)
    for (std::size_t cell = grid.num_found.size(); cell-- > 0;) {
      const double depth = options.depths[cell / num_lengths];
      const int length = options.lengths[cell % num_lengths];
      Needle needle{
          cell, draw_fact(options.task, options.seed, fact_item(sample, length, depth)), {}};
      DUNLIN_ASSIGN(prompt, needle_prompt(session, needle.fact, options.seed,
                                          static_cast<std::uint32_t>(sample), depth,
                                          length - kAnswerTokens, options.as_chat));
      needle.prompt = std::move(prompt);
      needles.push_back(std::move(needle));
    }
  const int count = static_cast<int>(needles.size());
  DUNLIN_TRY(run_requests(
      session.engine(), count,
      [&](int idx) {
        return greedy_request(session, std::move(needles[static_cast<std::size_t>(idx)].prompt),
                              kAnswerTokens);
      },
      [&](int idx, const FinishedRequest& finished) {
        const Needle& needle = needles[static_cast<std::size_t>(idx)];
        grid.num_found[needle.cell] +=
            holds_answer(answer_text(session, finished.tokens), needle.fact.answer);
        if (progress) progress(idx + 1, count);
      }));
  return grid;
}

}  // namespace dunlin::eval
