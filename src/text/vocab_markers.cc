// What the names of markers say: which tokens are control tokens, and which end a generation.
#include <algorithm>
#include <array>

#include "text/vocab.h"

namespace dunlin {
namespace {

// End a turn or a text, by the conventions of the models' templates.
constexpr std::array<std::string_view, 18> kTurnEnds = {
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<end_of_turn>",
    "<turn|>",
    "<eos>",
    "<|eot|>",
    "<|eom|>",
    "<EOT>",
    "_<EOT>",
    "<|END_OF_TURN_TOKEN|>",
    "<|return|>",
    "<|call|>",
    "<end_of_utterance>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"};

// Structure a prompt. Some files call them user-defined or even normal.
constexpr std::array<std::string_view, 11> kTurnStarts = {
    "<bos>",
    "<|im_start|>",
    "<|begin_of_text|>",
    "<start_of_turn>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|START_OF_TURN_TOKEN|>",
    "<\xEF\xBD\x9C"
    "begin\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>"};

// Only in SentencePiece's reserved place at the front: elsewhere they are HTML (as in Gemma).
constexpr std::string_view kSentenceStart = "<s>", kSentenceEnd = "</s>";
constexpr TokenId kNumReservedIds = 4;

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view text) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

}  // namespace

void classify_markers(Vocab& vocab, const std::vector<TokenId>& more_eos_ids) {
  std::vector<TokenId>& ends = vocab.eos_ids;
  ends.clear();
  const auto add = [&](TokenId id) {
    if (id >= 0 && std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  };
  add(vocab.eos_id);
  for (TokenId id : more_eos_ids) add(id);
  for (TokenId id = 0; id < vocab.size(); ++id) {
    const std::string_view text = vocab.tokens[static_cast<std::size_t>(id)];
    if (text.size() < 3 || (text.front() != '<' && text.front() != '_') || text.back() != '>') {
      continue;
    }
    const bool reserved = id < kNumReservedIds;
    const bool is_end = is_one_of(kTurnEnds, text) || (reserved && text == kSentenceEnd);
    if (is_end) add(id);
    if (is_end || is_one_of(kTurnStarts, text) || (reserved && text == kSentenceStart)) {
      vocab.types[static_cast<std::size_t>(id)] = TokenType::kControl;
    }
  }
}

}  // namespace dunlin
