#include "text/hf_file.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

namespace dunlin::hf {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxNodes = 4 << 20;  // of the tree; the flat lists are bounded by the file
constexpr std::size_t kMaxVocab = std::size_t{kMaxTokenId} + 1;

class Reader final : public json::json_sax_t {
 public:
  explicit Reader(TokenizerFile& out) : out_(out) {}
  std::string error;  // why the reader stopped

  bool null() override { return add(json()); }
  bool boolean(bool value) override { return add(json(value)); }
  bool number_integer(json::number_integer_t value) override {
    return capture_ != Capture::kNone ? capture_number(static_cast<double>(value), true)
                                      : add(json(value));
  }
  bool number_unsigned(json::number_unsigned_t value) override {
    return capture_ != Capture::kNone ? capture_number(static_cast<double>(value), true)
                                      : add(json(value));
  }
  bool number_float(json::number_float_t value, const std::string&) override {
    return capture_ != Capture::kNone ? capture_number(value, false) : add(json(value));
  }
  bool string(std::string& value) override {
    return capture_ != Capture::kNone ? capture_string(value) : add(json(std::move(value)));
  }
  bool binary(json::binary_t&) override { return stop("binary values are not JSON"); }

  bool start_object(std::size_t) override { return start(json::object()); }
  bool start_array(std::size_t) override { return start(json::array()); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(std::string& value) override {
    key_ = std::move(value);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return stop(fmt::format("is not JSON (byte {})", position));
  }

 private:
  enum class Capture { kNone, kVocabObject, kVocabArray, kMerges };

  bool stop(std::string why) {
    if (error.empty()) error = std::move(why);
    return false;
  }
  bool bad_entry() {
    switch (capture_) {
      case Capture::kVocabObject:
        return stop(fmt::format("model.vocab: entry {} must be a text and an integer from 0 to {}",
                                out_.vocab.size(), kMaxTokenId));
      case Capture::kVocabArray:
        return stop(
            fmt::format("model.vocab: entry {} must be a text and a number", out_.vocab.size()));
      default:
        return stop(
            fmt::format("model.merges: entry {} must be two tokens: \"LEFT RIGHT\" or "
                        "[\"LEFT\", \"RIGHT\"]",
                        out_.merges.size()));
    }
  }

  // A value of the tree: a member of the object or array that is open.
  json* put(json value) {
    if (++num_nodes_ > kMaxNodes) {
      stop(fmt::format("has more than {} values", kMaxNodes));
      return nullptr;
    }
    if (open_.empty()) {
      out_.root = std::move(value);
      return &out_.root;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    json& member = parent[key_];
    member = std::move(value);
    return &member;
  }
  bool add(json value) {
    if (capture_ != Capture::kNone) return bad_entry();
    return put(std::move(value)) != nullptr;
  }

  bool start(json container) {
    if (capture_ != Capture::kNone) return start_entry(container.is_array());
    if (open_.size() >= kMaxDepth) return stop(fmt::format("is nested deeper than {}", kMaxDepth));
    if (open_.size() == 2 && open_.back() == model_) {
      if (key_ == "vocab") {
        if (std::exchange(out_.has_vocab, true)) return stop("model.vocab is there twice");
        out_.vocab_is_scored = container.is_array();
        capture_ = container.is_array() ? Capture::kVocabArray : Capture::kVocabObject;
        return true;
      }
      if (key_ == "merges" && container.is_array()) {
        if (std::exchange(out_.has_merges, true)) return stop("model.merges is there twice");
        capture_ = Capture::kMerges;
        return true;
      }
    }
    const bool is_model = open_.size() == 1 && key_ == "model";
    json* placed = put(std::move(container));
    if (placed == nullptr) return false;
    if (is_model) model_ = placed;
    open_.push_back(placed);
    return true;
  }

  bool start_entry(bool is_array) {
    if (!is_array || in_pair_ || capture_ == Capture::kVocabObject) return bad_entry();
    in_pair_ = true;
    pair_texts_.clear();
    pair_number_.reset();
    return true;
  }

  bool end() {
    if (capture_ == Capture::kNone) {
      open_.pop_back();
      return true;
    }
    if (!in_pair_) {
      capture_ = Capture::kNone;
      return true;
    }
    in_pair_ = false;
    if (capture_ == Capture::kMerges) {
      if (pair_texts_.size() != 2) return bad_entry();
      out_.merges.emplace_back(std::move(pair_texts_[0]), std::move(pair_texts_[1]));
      return true;
    }
    if (pair_texts_.size() != 1 || !pair_number_) return bad_entry();
    return add_vocab(std::move(pair_texts_[0]), *pair_number_);
  }

  bool add_vocab(std::string text, double number) {
    if (out_.vocab.size() >= kMaxVocab) {
      return stop(fmt::format("model.vocab has more than {} entries", kMaxVocab));
    }
    out_.vocab.emplace_back(std::move(text), number);
    return true;
  }

  bool capture_number(double value, bool is_integer) {
    if (capture_ == Capture::kVocabObject) {
      if (!is_integer || value < 0 || value > kMaxTokenId) return bad_entry();
      return add_vocab(std::move(key_), value);
    }
    if (capture_ != Capture::kVocabArray || !in_pair_ || pair_texts_.size() != 1 || pair_number_ ||
        !std::isfinite(value)) {
      return bad_entry();
    }
    pair_number_ = value;
    return true;
  }

  bool capture_string(std::string& value) {
    if (in_pair_) {
      if (pair_texts_.size() == 2 || pair_number_) return bad_entry();
      pair_texts_.push_back(std::move(value));
      return true;
    }
    if (capture_ != Capture::kMerges) return bad_entry();
    // The first line of a merges.txt may have come along.
    if (value.starts_with("#version")) return true;
    const std::size_t space = value.find(' ');
    if (space == std::string::npos || value.find(' ', space + 1) != std::string::npos) {
      return bad_entry();
    }
    out_.merges.emplace_back(value.substr(0, space), value.substr(space + 1));
    return true;
  }

  TokenizerFile& out_;
  std::vector<json*> open_;
  const json* model_ = nullptr;
  std::string key_;
  std::size_t num_nodes_ = 0;
  Capture capture_ = Capture::kNone;
  bool in_pair_ = false;
  std::vector<std::string> pair_texts_;
  std::optional<double> pair_number_;
};

}  // namespace

Result<TokenizerFile> TokenizerFile::parse(std::string_view text) {
  if (text.size() > kMaxFileBytes) {
    return invalid(fmt::format("has {} bytes; at most {} are read", text.size(), kMaxFileBytes));
  }
  TokenizerFile file;
  Reader reader(file);
  const bool done = json::sax_parse(text, &reader);
  if (!done) return invalid(reader.error.empty() ? "is not JSON" : reader.error);
  if (!file.root.is_object()) return invalid("must be an object");
  return file;
}

Result<nlohmann::json> parse_json_object(std::string_view text) {
  DUNLIN_ASSIGN(file, TokenizerFile::parse(text));
  return std::move(file.root);
}

}  // namespace dunlin::hf
