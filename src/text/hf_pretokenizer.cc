#include "text/hf_pretokenizer.h"

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "text/byte_chars.h"
#include "text/growth.h"
#include "text/hf_unicode.h"
#include "text/prepend_scheme.h"
#include "text/pretokenizer_table.h"
#include "text/text_split.h"

namespace dunlin::hf {
namespace {

using Steps = std::vector<std::unique_ptr<const PreTokenizerStep>>;

constexpr int kMaxDepth = 8;  // of sequences in sequences

class Split final : public PreTokenizerStep {
 public:
  explicit Split(Splitter splitter) : splitter_(std::move(splitter)) {}
  void split(Piece piece, ByteRegex::Scratch& scratch, PieceSink sink) const override {
    splitter_.split(piece.text, scratch, [&](std::string_view part) {
      sink({part, piece.at_start && part.data() == piece.text.data()});
    });
  }

 private:
  Splitter splitter_;
};

class ByteLevel final : public PreTokenizerStep {
 public:
  ByteLevel(bool add_prefix_space, std::optional<Splitter> splitter)
      : add_prefix_space_(add_prefix_space), splitter_(std::move(splitter)) {
    for (std::size_t byte = 0; byte < chars_.size(); ++byte) {
      chars_[byte] = char_of_byte(static_cast<unsigned char>(byte));
    }
  }
  void split(Piece piece, ByteRegex::Scratch& scratch, PieceSink sink) const override {
    std::string prefixed;
    std::string_view text = piece.text;
    if (add_prefix_space_ && !text.starts_with(' ')) {
      prefixed.append(" ").append(text);
      text = prefixed;
    }
    std::string chars;
    bool at_start = piece.at_start;
    const auto give = [&](std::string_view part) {
      chars.clear();
      for (const char byte : part) chars += chars_[static_cast<unsigned char>(byte)];
      sink({chars, at_start});
      at_start = false;
    };
    if (splitter_) {
      splitter_->split(text, scratch, give);
    } else {
      give(text);
    }
  }
  std::size_t growth() const override { return add_prefix_space_ ? 4 : 2; }

 private:
  bool add_prefix_space_;
  std::optional<Splitter> splitter_;
  std::array<std::string, 256> chars_;
};

class Metaspace final : public PreTokenizerStep {
 public:
  Metaspace(std::string replacement, PrependScheme scheme, std::optional<Splitter> splitter)
      : replacement_(std::move(replacement)), scheme_(scheme), splitter_(std::move(splitter)) {}
  void split(Piece piece, ByteRegex::Scratch& scratch, PieceSink sink) const override {
    std::string text;
    text.reserve(piece.text.size() + piece.text.size() / 2 + replacement_.size());
    const bool prepends =
        scheme_ == PrependScheme::kAlways || (scheme_ == PrependScheme::kFirst && piece.at_start);
    if (prepends && !piece.text.starts_with(' ') && !piece.text.starts_with(replacement_)) {
      text += replacement_;
    }
    std::size_t pos = 0;
    for (std::size_t space; (space = piece.text.find(' ', pos)) != std::string_view::npos;) {
      text.append(piece.text.substr(pos, space - pos)).append(replacement_);
      pos = space + 1;
    }
    text.append(piece.text.substr(pos));
    if (!splitter_) return sink({text, piece.at_start});
    splitter_->split(text, scratch, [&](std::string_view part) {
      sink({part, piece.at_start && part.data() == text.data()});
    });
  }
  std::size_t growth() const override { return 1 + replacement_.size(); }

 private:
  std::string replacement_;
  PrependScheme scheme_;
  std::optional<Splitter> splitter_;
};

void add_splitter(Steps& steps, Pattern pattern, SplitBehavior behavior, bool invert = false) {
  steps.push_back(std::make_unique<Split>(Splitter{std::move(pattern), behavior, invert}));
}

Outcome add_split(const JsonView& view, Steps& steps, int) {
  DUNLIN_ASSIGN(pattern, Pattern::make(view, "pattern"));
  DUNLIN_ASSIGN(behavior, read_split_behavior(view, ""));
  DUNLIN_ASSIGN(invert, view.boolean_or("invert", false));
  add_splitter(steps, std::move(pattern), behavior, invert);
  return {};
}

Outcome add_byte_level(const JsonView& view, Steps& steps, int) {
  DUNLIN_ASSIGN(add_prefix_space, view.boolean_or("add_prefix_space", true));
  DUNLIN_ASSIGN(use_regex, view.boolean_or("use_regex", true));
  std::optional<Splitter> splitter;
  if (use_regex) {
    DUNLIN_ASSIGN(pattern, Pattern::regex(kGpt2Expression));
    splitter.emplace(Splitter{std::move(pattern), SplitBehavior::kIsolated, false});
  }
  steps.push_back(std::make_unique<ByteLevel>(add_prefix_space, std::move(splitter)));
  return {};
}

Outcome add_metaspace(const JsonView& view, Steps& steps, int) {
  DUNLIN_ASSIGN(replacement, view.string_or("replacement", "\u2581"));
  if (replacement.empty()) return view.error("replacement must be a character");
  PrependScheme scheme = PrependScheme::kAlways;
  if (view.has("prepend_scheme")) {
    DUNLIN_ASSIGN(row, find_named(view, "prepend_scheme",
                                  std::span<const PrependSchemeName>(kPrependSchemes)));
    scheme = row->scheme;
  }
  // Older files say it so.
  DUNLIN_ASSIGN(add_prefix_space, view.boolean_or("add_prefix_space", true));
  if (!add_prefix_space) {
    if (view.has("prepend_scheme") && scheme != PrependScheme::kNever) {
      return view.error("add_prefix_space is false, but prepend_scheme is not 'never'");
    }
    scheme = PrependScheme::kNever;
  }
  DUNLIN_ASSIGN(split, view.boolean_or("split", true));
  std::optional<Splitter> splitter;
  if (split) {
    DUNLIN_ASSIGN(pattern, Pattern::literal(replacement));
    splitter.emplace(Splitter{std::move(pattern), SplitBehavior::kMergedWithNext, false});
  }
  steps.push_back(std::make_unique<Metaspace>(std::move(replacement), scheme, std::move(splitter)));
  return {};
}

// Runs of word characters, and runs of what is neither those nor spaces.
Outcome add_whitespace(const JsonView&, Steps& steps, int) {
  ParsedRegex regex;
  regex.sets = {word_characters(), word_characters().united(spaces()).complement()};
  regex.pieces = {{"", 0}, {"+|", -1}, {"", 1}, {"+", -1}};
  DUNLIN_ASSIGN(pattern, Pattern::regex(regex));
  add_splitter(steps, std::move(pattern), SplitBehavior::kRemoved, /*invert=*/true);
  return {};
}

Outcome add_whitespace_split(const JsonView&, Steps& steps, int) {
  add_splitter(steps, Pattern::one_of(spaces()), SplitBehavior::kRemoved);
  return {};
}

Outcome add_punctuation(const JsonView& view, Steps& steps, int) {
  DUNLIN_ASSIGN(behavior, read_split_behavior(view, "Isolated"));
  add_splitter(steps, Pattern::one_of(punctuation()), behavior);
  return {};
}

Outcome add_digits(const JsonView& view, Steps& steps, int) {
  DUNLIN_ASSIGN(individual, view.boolean_or("individual_digits", false));
  add_splitter(steps, individual ? Pattern::one_of(numbers()) : Pattern::runs_of(numbers()),
               SplitBehavior::kIsolated);
  return {};
}

Outcome add_bert(const JsonView&, Steps& steps, int) {
  add_splitter(steps, Pattern::one_of(spaces()), SplitBehavior::kRemoved);
  add_splitter(steps, Pattern::one_of(punctuation()), SplitBehavior::kIsolated);
  return {};
}

Outcome add_delimiter(const JsonView& view, Steps& steps, int) {
  DUNLIN_ASSIGN(delimiter, view.string("delimiter"));
  if (delimiter.empty()) return view.error("delimiter must be a character");
  DUNLIN_ASSIGN(pattern, Pattern::literal(std::move(delimiter)));
  add_splitter(steps, std::move(pattern), SplitBehavior::kRemoved);
  return {};
}

Outcome add_sequence(const JsonView& view, Steps& steps, int depth);

struct Row {
  std::string_view name;
  Outcome (*add)(const JsonView& view, Steps& steps, int depth);
};
constexpr Row kTypes[] = {
    {"Sequence", add_sequence},       {"Split", add_split},
    {"ByteLevel", add_byte_level},    {"Metaspace", add_metaspace},
    {"Whitespace", add_whitespace},   {"WhitespaceSplit", add_whitespace_split},
    {"Punctuation", add_punctuation}, {"Digits", add_digits},
    {"BertPreTokenizer", add_bert},   {"CharDelimiterSplit", add_delimiter},
};

Outcome add_any(const JsonView& view, Steps& steps, int depth) {
  DUNLIN_ASSIGN(row, find_named(view, "type", std::span<const Row>(kTypes)));
  DUNLIN_TRY(row->add(view, steps, depth));
  return check_growth(steps, view);  // besides, each step is a level of calls for each piece
}

Outcome add_sequence(const JsonView& view, Steps& steps, int depth) {
  if (depth >= kMaxDepth) return view.error("sequences are nested too deeply");
  DUNLIN_ASSIGN(members, view.array("pretokenizers"));
  for (const JsonView& member : members) DUNLIN_TRY(add_any(member, steps, depth + 1));
  return {};
}

}  // namespace

Result<PreTokenizer> PreTokenizer::make(const JsonView& file) {
  PreTokenizer pretokenizer;
  if (!file.has("pre_tokenizer")) return pretokenizer;
  DUNLIN_ASSIGN(view, file.object("pre_tokenizer"));
  DUNLIN_TRY(add_any(view, pretokenizer.steps_, 0));
  return pretokenizer;
}

void PreTokenizer::split_from(std::size_t step_idx, Piece piece, ByteRegex::Scratch& scratch,
                              PieceSink sink) const {
  if (step_idx == steps_.size()) return sink(piece);
  steps_[step_idx]->split(piece, scratch,
                          [&](Piece part) { split_from(step_idx + 1, part, scratch, sink); });
}

}  // namespace dunlin::hf
