#include "text/bpe_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "text/byte_chars.h"

namespace dunlin {

Result<TokenTable> load_bpe_tokens(const Vocab& vocab) {
  std::size_t num_bytes = 0;
  for (std::string_view token : vocab.tokens) num_bytes += token.size();
  TokenTable table(vocab.tokens.size(), num_bytes);
  std::string bytes;
  for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
    const std::string_view token = vocab.tokens[i];
    const bool is_ordinary =
        vocab.types[i] == TokenType::kNormal || vocab.types[i] == TokenType::kByte;
    bytes.clear();
    // A normal token with characters that stand for no byte can be decoded, but never arises.
    const bool is_findable = is_ordinary && append_bytes_of_chars(token, bytes) && !bytes.empty();
    const TokenId id = table.add(is_findable ? std::string_view(bytes) : token);
    if (!is_findable) continue;
    const TokenId twin = table.insert(id);
    if (twin >= 0) {
      return invalid(
          fmt::format("tokenizer.ggml.tokens: tokens {} and {} are both '{}'", twin, id, token));
    }
  }
  return table;
}

namespace {

// One line of the list on its way through the look-ups.
struct PendingMerge {
  std::string bytes;  // left and right
  std::size_t left_size;
  std::uint64_t left_hash;
  std::uint64_t right_hash;
  std::uint32_t rank;

  std::string_view left() const { return std::string_view(bytes).substr(0, left_size); }
  std::string_view right() const { return std::string_view(bytes).substr(left_size); }
};

class MergeLoader {
 public:
  MergeLoader(const Vocab& vocab, const TokenTable& table)
      : vocab_(vocab), table_(table), merges_(vocab.merges.size()) {}

  // In batches: first all of a batch's texts are hashed and their slots fetched, then looked up.
  Result<MergeTable> load() {
    std::array<PendingMerge, 32> batch;
    for (std::size_t start = 0; start < vocab_.merges.size(); start += batch.size()) {
      const std::size_t count = std::min(batch.size(), vocab_.merges.size() - start);
      for (std::size_t i = 0; i < count; ++i) {
        DUNLIN_TRY(prepare(static_cast<std::uint32_t>(start + i), batch[i]));
      }
      for (std::size_t i = 0; i < count; ++i) DUNLIN_TRY(insert(batch[i]));
    }
    return std::move(merges_);
  }

 private:
  tl::unexpected<Status> bad_merge(std::uint32_t rank, std::string_view what) const {
    return invalid(
        fmt::format("tokenizer.ggml.merges: entry {} ('{}') {}", rank, vocab_.merges[rank], what));
  }

  Outcome prepare(std::uint32_t rank, PendingMerge& merge) const {
    // A space can't be part of a token's name, except that old files may begin with one.
    const std::string_view line = vocab_.merges[rank];
    const std::size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size()) {
      return bad_merge(rank, "is not two tokens with a space between");
    }
    merge.bytes.clear();
    merge.rank = rank;
    if (!append_bytes_of_chars(line.substr(0, space), merge.bytes)) return unsayable(rank, merge);
    merge.left_size = merge.bytes.size();
    if (!append_bytes_of_chars(line.substr(space + 1), merge.bytes)) return unsayable(rank, merge);
    merge.left_hash = TokenTable::hash(merge.left());
    merge.right_hash = TokenTable::hash(merge.right());
    table_.prefetch(merge.left_hash);
    table_.prefetch(merge.right_hash);
    return {};
  }

  // A part that is not made of bytes' characters: left out if it is some token all the same.
  Outcome unsayable(std::uint32_t rank, PendingMerge& merge) const {
    merge.bytes.clear();
    merge.left_size = 0;
    merge.left_hash = merge.right_hash = TokenTable::hash({});
    return check_is_other_token(rank);
  }

  Outcome insert(const PendingMerge& merge) {
    if (merge.bytes.empty()) return {};
    const TokenId left = table_.find(merge.left(), merge.left_hash);
    const TokenId right = table_.find(merge.right(), merge.right_hash);
    const TokenId merged = find_merged(merge.bytes);
    if (left < 0 || right < 0 || merged < 0) return check_is_other_token(merge.rank);
    merges_.insert(left, right, {merge.rank, merged});
    return {};
  }

  // In nearly all vocabularies the n-th merge makes the n-th of a row of ids, or, where a token is
  // listed with each way to make it, the same as the one before.
  TokenId find_merged(std::string_view bytes) {
    for (TokenId guess : {expected_, expected_ - 1}) {
      if (guess >= 0 && guess < table_.size() && table_.text(guess) == bytes &&
          vocab_.types[static_cast<std::size_t>(guess)] == TokenType::kNormal) {
        expected_ = guess + 1;
        return guess;
      }
    }
    const TokenId id = table_.find(bytes);
    if (id >= 0) expected_ = id + 1;
    return id;
  }

  // A merge that can't be used must at least name tokens: control or user-defined ones, say.
  Outcome check_is_other_token(std::uint32_t rank) const {
    const std::string_view line = vocab_.merges[rank];
    const std::size_t space = line.find(' ', 1);
    const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
    if (all_tokens_.empty()) all_tokens_.insert(vocab_.tokens.begin(), vocab_.tokens.end());
    for (std::string_view part : {left, right}) {
      if (!all_tokens_.contains(part)) {
        return bad_merge(rank, fmt::format("names '{}', which is no token", part));
      }
    }
    const std::string merged = std::string(left) + std::string(right);
    if (!all_tokens_.contains(merged)) {
      return bad_merge(rank, fmt::format("makes '{}', which is no token", merged));
    }
    return {};
  }

  const Vocab& vocab_;
  const TokenTable& table_;
  MergeTable merges_;
  TokenId expected_ = -1;
  mutable std::unordered_set<std::string_view> all_tokens_;  // filled when first needed
};

}  // namespace

Result<MergeTable> load_bpe_merges(const Vocab& vocab, const TokenTable& table) {
  return MergeLoader(vocab, table).load();
}

}  // namespace dunlin
