#include "text/hf_decoder.h"

#include <charconv>
#include <span>
#include <utility>

#include "text/byte_chars.h"
#include "text/growth.h"
#include "text/text_split.h"

namespace dunlin::hf {
namespace {

constexpr int kMaxDepth = 8;  // of sequences in sequences

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t pos = text.find(from); pos != std::string::npos;
       pos = text.find(from, pos + to.size())) {
    text.replace(pos, from.size(), to);
  }
}

class ByteLevel final : public DecoderStep {
 public:
  void apply(std::string& token, bool) const override {
    std::string bytes;
    // A token with other characters is its own bytes.
    if (append_bytes_of_chars(token, bytes)) token = std::move(bytes);
  }
};

class Metaspace final : public DecoderStep {
 public:
  Metaspace(std::string replacement, bool prepends)
      : replacement_(std::move(replacement)), prepends_(prepends) {}
  void apply(std::string& token, bool is_first) const override {
    replace_all(token, replacement_, is_first && prepends_ ? "" : " ");
  }

 private:
  std::string replacement_;
  bool prepends_;
};

class ByteFallback final : public DecoderStep {
 public:
  void apply(std::string& token, bool) const override {
    unsigned byte = 0;
    if (token.size() == 6 && token.starts_with("<0x") && token[5] == '>' &&
        std::from_chars(token.data() + 3, token.data() + 5, byte, 16).ptr == token.data() + 5) {
      token.assign(1, static_cast<char>(byte));
    }
  }
};

// Of each token.
class Strip final : public DecoderStep {
 public:
  Strip(std::string content, int start, int stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void apply(std::string& token, bool) const override {
    for (int i = 0; i < start_ && token.starts_with(content_); ++i) token.erase(0, content_.size());
    for (int i = 0; i < stop_ && token.ends_with(content_); ++i) {
      token.resize(token.size() - content_.size());
    }
  }

 private:
  std::string content_;
  int start_;
  int stop_;
};

class Replace final : public DecoderStep {
 public:
  Replace(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(std::string& token, bool) const override {
    ByteRegex::Scratch scratch;
    std::string out;
    std::size_t pos = 0;
    pattern_.for_each_match(token, scratch, [&](std::size_t begin, std::size_t end) {
      out.append(token, pos, begin - pos).append(content_);
      pos = end;
    });
    if (pos > 0 || !out.empty()) token = out.append(token, pos);
  }
  std::size_t growth() const override { return pattern_.growth(content_); }

 private:
  Pattern pattern_;
  std::string content_;
};

class WordPiece final : public DecoderStep {
 public:
  WordPiece(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void apply(std::string& token, bool is_first) const override {
    if (!is_first) {
      if (token.starts_with(prefix_)) {
        token.erase(0, prefix_.size());
      } else {
        token.insert(0, 1, ' ');
      }
    }
    if (!cleanup_) return;
    constexpr std::pair<std::string_view, std::string_view> kRules[] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : kRules) replace_all(token, from, to);
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

class SpaceBetween final : public DecoderStep {
 public:
  void apply(std::string& token, bool is_first) const override {
    if (!is_first) token.insert(0, 1, ' ');
  }
};

class ReplaceSuffix final : public DecoderStep {
 public:
  explicit ReplaceSuffix(std::string suffix) : suffix_(std::move(suffix)) {}
  void apply(std::string& token, bool) const override { replace_all(token, suffix_, " "); }

 private:
  std::string suffix_;
};

}  // namespace

class DecoderReader {
 public:
  explicit DecoderReader(Decoder& out) : out_(out) {}

  Outcome read(const JsonView& view, int depth);
  void add(std::unique_ptr<const DecoderStep> step) { out_.steps_.push_back(std::move(step)); }

  Outcome read_sequence(const JsonView& view, int depth) {
    if (depth >= kMaxDepth) return view.error("sequences are nested too deeply");
    DUNLIN_ASSIGN(members, view.array("decoders"));
    for (const JsonView& member : members) DUNLIN_TRY(read(member, depth + 1));
    return {};
  }
  Outcome read_byte_level(const JsonView& view, int) {
    if (fused_) return view.error("can't stand behind Fuse");
    // Its bytes become text here, as they do in Fuse.
    add(std::make_unique<ByteLevel>());
    fused_ = true;
    return {};
  }
  Outcome read_metaspace(const JsonView& view, int) {
    if (fused_) return view.error("can't stand behind Fuse or ByteLevel");
    DUNLIN_ASSIGN(replacement, view.string_or("replacement", "\u2581"));
    if (replacement.empty()) return view.error("replacement must be a character");
    DUNLIN_ASSIGN(scheme, view.string_or("prepend_scheme", "always"));
    DUNLIN_ASSIGN(add_prefix_space, view.boolean_or("add_prefix_space", true));
    add(std::make_unique<Metaspace>(std::move(replacement), scheme != "never" && add_prefix_space));
    return {};
  }
  Outcome read_byte_fallback(const JsonView& view, int) {
    if (fused_) return view.error("can't stand behind Fuse or ByteLevel");
    add(std::make_unique<ByteFallback>());
    return {};
  }
  Outcome read_fuse(const JsonView&, int) {
    fused_ = true;
    return {};
  }
  Outcome read_strip(const JsonView& view, int) {
    DUNLIN_ASSIGN(content, view.string_or("content", " "));
    DUNLIN_ASSIGN(start, view.integer("start", 0, 1024));
    DUNLIN_ASSIGN(stop, view.integer("stop", 0, 1024));
    if (content.empty()) return view.error("content must be a character");
    if (!fused_) {
      add(std::make_unique<Strip>(std::move(content), start, stop));
      return {};
    }
    // Of the whole text.
    if (start == 0 && stop == 0) return {};
    if (content != " " || start != 1 || stop != 0 || out_.strips_leading_space_) {
      return view.error("behind Fuse only one space at the start can be stripped");
    }
    out_.strips_leading_space_ = true;
    return {};
  }
  Outcome read_replace(const JsonView& view, int) {
    if (fused_) return view.error("can't stand behind Fuse or ByteLevel");
    DUNLIN_ASSIGN(pattern, Pattern::make(view, "pattern"));
    DUNLIN_ASSIGN(content, view.string("content"));
    add(std::make_unique<Replace>(std::move(pattern), std::move(content)));
    return {};
  }
  Outcome read_wordpiece(const JsonView& view, int) {
    if (fused_) return view.error("can't stand behind Fuse or ByteLevel");
    DUNLIN_ASSIGN(prefix, view.string_or("prefix", "##"));
    DUNLIN_ASSIGN(cleanup, view.boolean_or("cleanup", true));
    add(std::make_unique<WordPiece>(std::move(prefix), cleanup));
    return {};
  }
  Outcome read_bpe(const JsonView& view, int) {
    if (fused_) return view.error("can't stand behind Fuse or ByteLevel");
    DUNLIN_ASSIGN(suffix, view.string_or("suffix", "</w>"));
    if (suffix.empty()) return view.error("suffix must not be empty");
    add(std::make_unique<ReplaceSuffix>(std::move(suffix)));
    out_.strips_trailing_space_ = true;
    return {};
  }

 private:
  Decoder& out_;
  bool fused_ = false;  // from here on steps would see the whole text
};

namespace {

struct Row {
  std::string_view name;
  Outcome (DecoderReader::*read)(const JsonView& view, int depth);
};
constexpr Row kTypes[] = {
    {"Sequence", &DecoderReader::read_sequence},
    {"ByteLevel", &DecoderReader::read_byte_level},
    {"Metaspace", &DecoderReader::read_metaspace},
    {"ByteFallback", &DecoderReader::read_byte_fallback},
    {"Fuse", &DecoderReader::read_fuse},
    {"Strip", &DecoderReader::read_strip},
    {"Replace", &DecoderReader::read_replace},
    {"WordPiece", &DecoderReader::read_wordpiece},
    {"BPEDecoder", &DecoderReader::read_bpe},
};

}  // namespace

Outcome DecoderReader::read(const JsonView& view, int depth) {
  DUNLIN_ASSIGN(row, find_named(view, "type", std::span<const Row>(kTypes)));
  DUNLIN_TRY((this->*row->read)(view, depth));
  return check_growth(out_.steps_, view);
}

Result<Decoder> Decoder::make(const JsonView& file) {
  Decoder decoder;
  DecoderReader reader(decoder);
  if (!file.has("decoder")) {
    reader.add(std::make_unique<SpaceBetween>());
    return decoder;
  }
  DUNLIN_ASSIGN(view, file.object("decoder"));
  DUNLIN_TRY(reader.read(view, 0));
  return decoder;
}

std::string Decoder::decode(std::string_view token, bool is_first) const {
  std::string text(token);
  for (const auto& step : steps_) step->apply(text, is_first);
  return text;
}

}  // namespace dunlin::hf
