#include "text/hf_normalizer.h"

#include <utf8proc.h>

#include <array>
#include <utility>

#include "base/utf8.h"
#include "text/byte_chars.h"
#include "text/growth.h"
#include "text/hf_charsmap.h"
#include "text/hf_unicode.h"
#include "text/hf_unicode_form.h"
#include "text/normalized_writer.h"
#include "text/text_split.h"

namespace dunlin::hf {
namespace {

using Steps = std::vector<std::unique_ptr<const NormalizerStep>>;

constexpr int kMaxDepth = 8;  // of sequences in sequences

// Calls f(c, end, writer) for each character, which writes it up to `end` or leaves it to be
// copied.
template <typename F>
void rewrite_chars(NormalizedText& text, const F& f) {
  NormalizedWriter writer(text);
  const std::string_view source = writer.source();
  for (std::size_t pos = 0; pos < source.size();) {
    const std::size_t begin = pos;
    const char32_t c = decode_valid_utf8(source.data() + pos);
    pos += static_cast<std::size_t>(utf8_length(static_cast<unsigned char>(source[pos])));
    if (const auto replacement = f(c)) {
      writer.copy_until(begin);
      writer.replace_until(pos, *replacement);
    }
  }
  writer.finish();
}

using Replacement = std::optional<std::string>;

class Lowercase final : public NormalizerStep {
 public:
  void apply(NormalizedText& text, ByteRegex::Scratch&) const override {
    rewrite_chars(text, [](char32_t c) -> Replacement {
      if (c < 0x80) {
        if (c < 'A' || c > 'Z') return std::nullopt;
        return std::string(1, static_cast<char>(c | 0x20));
      }
      if (c == 0x130) return "i\u0307";  // the one whose lower case is two characters
      const auto lower = static_cast<char32_t>(utf8proc_tolower(static_cast<int>(c)));
      if (lower == c) return std::nullopt;
      std::string out;
      append_utf8(out, lower);
      return out;
    });
  }
};

class RemoveSet final : public NormalizerStep {
 public:
  explicit RemoveSet(const CodePointSet& set) : set_(set) {}
  void apply(NormalizedText& text, ByteRegex::Scratch&) const override {
    rewrite_chars(text, [this](char32_t c) -> Replacement {
      return set_.contains(c) ? Replacement("") : std::nullopt;
    });
  }

 private:
  const CodePointSet& set_;
};

class SpacesToSpace final : public NormalizerStep {
 public:
  void apply(NormalizedText& text, ByteRegex::Scratch&) const override {
    rewrite_chars(text, [](char32_t c) -> Replacement {
      return c != ' ' && spaces().contains(c) ? Replacement(" ") : std::nullopt;
    });
  }
};

class SetIdeographsApart final : public NormalizerStep {
 public:
  void apply(NormalizedText& text, ByteRegex::Scratch&) const override {
    rewrite_chars(text, [](char32_t c) -> Replacement {
      if (c < 0x3400 || !bert_ideographs().contains(c)) return std::nullopt;
      std::string out = " ";
      append_utf8(out, c);
      return out + " ";
    });
  }
};

class Strip final : public NormalizerStep {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(NormalizedText& text, ByteRegex::Scratch&) const override {
    NormalizedWriter writer(text);
    const std::string_view source = writer.source();
    std::size_t begin = source.size();
    std::size_t end = 0;  // behind the last character that is no space
    bool inside = false;
    for (std::size_t pos = 0; pos < source.size();) {
      const char32_t c = decode_valid_utf8(source.data() + pos);
      const std::size_t start = pos;
      pos += static_cast<std::size_t>(utf8_length(static_cast<unsigned char>(source[pos])));
      if (spaces().contains(c)) continue;
      if (!inside) begin = start;
      inside = true;
      end = pos;
    }
    if (left_) writer.replace_until(begin, "");
    if (right_) {
      writer.copy_until(std::max(end, writer.position()));
      writer.replace_until(source.size(), "");
    }
    writer.finish();
  }

 private:
  bool left_;
  bool right_;
};

class Replace final : public NormalizerStep {
 public:
  Replace(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(NormalizedText& text, ByteRegex::Scratch& scratch) const override {
    NormalizedWriter writer(text);
    pattern_.for_each_match(writer.source(), scratch, [&](std::size_t begin, std::size_t end) {
      writer.copy_until(begin);
      writer.replace_until(end, content_);
    });
    writer.finish();
  }
  std::size_t growth() const override { return pattern_.growth(content_); }

 private:
  Pattern pattern_;
  std::string content_;
};

class Prepend final : public NormalizerStep {
 public:
  explicit Prepend(std::string content) : content_(std::move(content)) {}
  void apply(NormalizedText& text, ByteRegex::Scratch&) const override {
    if (text.text.empty()) return;
    NormalizedWriter writer(text);
    writer.replace_until(0, content_);
    writer.finish();
  }
  std::size_t growth() const override { return 1 + content_.size(); }

 private:
  std::string content_;
};

// SentencePiece's rules from machine translation.
class Nmt final : public NormalizerStep {
 public:
  void apply(NormalizedText& text, ByteRegex::Scratch&) const override {
    rewrite_chars(text, [](char32_t c) -> Replacement {
      const bool removed = (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F ||
                           c == 0x8F || c == 0x9F;
      if (removed) return "";
      const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
                         c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      return space ? Replacement(" ") : std::nullopt;
    });
  }
};

class BytesAsChars final : public NormalizerStep {
 public:
  void apply(NormalizedText& text, ByteRegex::Scratch&) const override {
    NormalizedWriter writer(text);
    const std::string_view source = writer.source();
    for (std::size_t i = 0; i < source.size(); ++i) {
      writer.replace_until(i + 1, char_of_byte(static_cast<unsigned char>(source[i])));
    }
    writer.finish();
  }
  std::size_t growth() const override { return 2; }
};

template <bool kCompatibility, bool kCompose>
Outcome add_form(const JsonView&, Steps& steps, int) {
  steps.push_back(std::make_unique<UnicodeForm>(kCompatibility, kCompose));
  return {};
}

template <typename Step>
Outcome add_plain(const JsonView&, Steps& steps, int) {
  steps.push_back(std::make_unique<Step>());
  return {};
}

Outcome add_strip_accents(const JsonView&, Steps& steps, int) {
  steps.push_back(std::make_unique<RemoveSet>(marks()));
  return {};
}

Outcome add_strip(const JsonView& view, Steps& steps, int) {
  DUNLIN_ASSIGN(left, view.boolean_or("strip_left", true));
  DUNLIN_ASSIGN(right, view.boolean_or("strip_right", true));
  steps.push_back(std::make_unique<Strip>(left, right));
  return {};
}

Outcome add_replace(const JsonView& view, Steps& steps, int) {
  DUNLIN_ASSIGN(pattern, Pattern::make(view, "pattern"));
  DUNLIN_ASSIGN(content, view.string("content"));
  steps.push_back(std::make_unique<Replace>(std::move(pattern), std::move(content)));
  return {};
}

Outcome add_prepend(const JsonView& view, Steps& steps, int) {
  DUNLIN_ASSIGN(content, view.string("prepend"));
  steps.push_back(std::make_unique<Prepend>(std::move(content)));
  return {};
}

Outcome add_bert(const JsonView& view, Steps& steps, int) {
  DUNLIN_ASSIGN(clean, view.boolean_or("clean_text", true));
  DUNLIN_ASSIGN(ideographs, view.boolean_or("handle_chinese_chars", true));
  DUNLIN_ASSIGN(lowercase, view.boolean_or("lowercase", true));
  DUNLIN_ASSIGN(strip_accents, view.boolean_or("strip_accents", lowercase));
  if (clean) {
    steps.push_back(std::make_unique<RemoveSet>(bert_removed()));
    steps.push_back(std::make_unique<SpacesToSpace>());
  }
  if (ideographs) steps.push_back(std::make_unique<SetIdeographsApart>());
  if (strip_accents) {
    steps.push_back(std::make_unique<UnicodeForm>(false, false));
    steps.push_back(std::make_unique<RemoveSet>(nonspacing_marks()));
  }
  if (lowercase) steps.push_back(std::make_unique<Lowercase>());
  return {};
}

Outcome add_precompiled(const JsonView& view, Steps& steps, int) {
  // Null where the model was trained without a map.
  if (!view.has("precompiled_charsmap")) return {};
  DUNLIN_ASSIGN(encoded, view.string("precompiled_charsmap"));
  auto made = Charsmap::make(encoded);
  if (!made) return tl::unexpected(made.error().with_prefix(view.path() + ".precompiled_charsmap"));
  steps.push_back(std::make_unique<Charsmap>(std::move(*made)));
  return {};
}

Outcome add_sequence(const JsonView& view, Steps& steps, int depth);

struct Row {
  std::string_view name;
  Outcome (*add)(const JsonView& view, Steps& steps, int depth);
};
constexpr Row kTypes[] = {
    {"Sequence", add_sequence},
    {"NFC", add_form<false, true>},
    {"NFD", add_form<false, false>},
    {"NFKC", add_form<true, true>},
    {"NFKD", add_form<true, false>},
    {"Lowercase", add_plain<Lowercase>},
    {"StripAccents", add_strip_accents},
    {"Strip", add_strip},
    {"Replace", add_replace},
    {"Prepend", add_prepend},
    {"BertNormalizer", add_bert},
    {"Precompiled", add_precompiled},
    {"Nmt", add_plain<Nmt>},
    {"ByteLevel", add_plain<BytesAsChars>},
};

Outcome add_any(const JsonView& view, Steps& steps, int depth) {
  DUNLIN_ASSIGN(row, find_named(view, "type", std::span<const Row>(kTypes)));
  DUNLIN_TRY(row->add(view, steps, depth));
  return check_growth(steps, view);
}

Outcome add_sequence(const JsonView& view, Steps& steps, int depth) {
  if (depth >= kMaxDepth) return view.error("sequences are nested too deeply");
  DUNLIN_ASSIGN(members, view.array("normalizers"));
  for (const JsonView& member : members) DUNLIN_TRY(add_any(member, steps, depth + 1));
  return {};
}

}  // namespace

Result<Normalizer> Normalizer::make(const JsonView& file) {
  Normalizer normalizer;
  if (!file.has("normalizer")) return normalizer;
  DUNLIN_ASSIGN(view, file.object("normalizer"));
  DUNLIN_TRY(add_any(view, normalizer.steps_, 0));
  return normalizer;
}

}  // namespace dunlin::hf
