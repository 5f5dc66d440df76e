#include "eval/recall.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "eval/draws.h"

namespace dunlin::eval {
namespace {

constexpr int kChatAnswerTokens = 16, kAnswerTokens = 8;
constexpr std::uint32_t kQueryStream = 0x80000000u;  // lists have lower ones

constexpr std::string_view kOnsets[] = {"b", "d", "f", "g", "k", "l", "m",  "n",
                                        "p", "r", "s", "t", "v", "z", "br", "tr"};
constexpr std::string_view kVowels[] = {"a", "e", "i", "o", "u"};

// A word of three syllables, most likely none of any language: 512,000 of them.
std::string draw_key(Draws& draws) {
  std::string key;
  for (int i = 0; i < 3; ++i) {
    key += draws.one_of(kOnsets);
    key += draws.one_of(kVowels);
  }
  return key;
}

TaskText question(const KeyValueList& list, const std::string& key, bool as_chat) {
  if (as_chat) {
    return {"Here is a list of names and their numbers.\n\n" + list.text(),
            fmt::format("What is the number of {}? Answer with the number alone.", key), ""};
  }
  return {"A list of names and their numbers:\n\n" + list.text(),
          "Some of the names again, with the same numbers:\n", key + ":"};
}

}  // namespace

std::string KeyValueList::text() const {
  std::string text;
  for (const auto& [key, value] : pairs) text += fmt::format("{}: {}\n", key, value);
  if (!text.empty()) text.pop_back();
  return text;
}

KeyValueList draw_list(std::uint64_t seed, std::uint32_t stream, int num_pairs) {
  KeyValueList list;
  std::set<std::string> known;
  for (std::uint64_t item = 0; std::ssize(list.pairs) < num_pairs; ++item) {
    Draws draws(seed, stream, item);
    std::string key = draw_key(draws);
    if (!known.insert(key).second) continue;
    list.pairs.emplace_back(std::move(key), std::to_string(1000 + draws.below(9000)));
  }
  return list;
}

std::vector<int> draw_queries(std::uint64_t seed, std::uint32_t stream, int num_pairs, int count) {
  std::vector<int> lines(static_cast<std::size_t>(num_pairs));
  std::iota(lines.begin(), lines.end(), 0);
  Draws draws(seed, stream | kQueryStream, static_cast<std::uint64_t>(num_pairs));
  const std::size_t num_drawn = static_cast<std::size_t>(std::min(count, num_pairs));
  for (std::size_t i = 0; i < num_drawn; ++i)
    std::swap(lines[i], lines[i + draws.below(lines.size() - i)]);
  lines.resize(num_drawn);
  return lines;
}

Result<std::vector<RecallRow>> measure_recall(Session& session, const RecallOptions& options,
                                              const Progress& progress) {
  struct Query {
    std::size_t row = 0;
    std::string answer;
    std::vector<TokenId> prompt;
  };
  const int max_tokens = options.as_chat ? kChatAnswerTokens : kAnswerTokens;
  std::vector<Query> queries;
  std::vector<MeanSum> lengths(options.num_pairs.size()), recalls(options.num_pairs.size());
  for (std::size_t row = 0; row < options.num_pairs.size(); ++row)
    for (int sample = 0; sample < options.num_samples; ++sample) {
      const auto stream = static_cast<std::uint32_t>(sample);
      const int num_pairs = options.num_pairs[row];
      const KeyValueList list = draw_list(options.seed, stream, num_pairs);
      for (const int line : draw_queries(options.seed, stream, num_pairs, options.num_queries)) {
        const auto& [key, value] = list.pairs[static_cast<std::size_t>(line)];
        DUNLIN_ASSIGN(prompt,
                      task_prompt(session, question(list, key, options.as_chat), options.as_chat));
        lengths[row].add(static_cast<double>(prompt.size()));
        queries.push_back({row, value, std::move(prompt)});
      }
    }
  const int count = static_cast<int>(queries.size());
  DUNLIN_TRY(run_requests(
      session.engine(), count,
      [&](int idx) {
        return greedy_request(session, std::move(queries[static_cast<std::size_t>(idx)].prompt),
                              max_tokens);
      },
      [&](int idx, const FinishedRequest& finished) {
        const Query& query = queries[static_cast<std::size_t>(idx)];
        // What follows the first line is about other keys.
        std::string answer = answer_text(session, finished.tokens);
        if (!options.as_chat) answer.resize(std::min(answer.find('\n'), answer.size()));
        recalls[query.row].add(holds_answer(answer, query.answer) ? 1 : 0);
        if (progress) progress(idx + 1, count);
      }));
  std::vector<RecallRow> rows;
  for (std::size_t i = 0; i < recalls.size(); ++i)
    rows.push_back({options.num_pairs[i], lengths[i].mean().value, recalls[i].mean(),
                    static_cast<int>(recalls[i].count())});
  return rows;
}

}  // namespace dunlin::eval
