#include "text/bpe_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>
#include <vector>

#include "text/byte_chars.h"

namespace dunlin {

namespace {

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool is_ordinary(TokenType type) { return type == TokenType::kNormal || type == TokenType::kByte; }

}  // namespace

Result<TokenTable> load_bpe_tokens(const Vocab& vocab) {
  std::size_t num_bytes = 0;
  for (std::string_view token : vocab.tokens) num_bytes += token.size();
  TokenTable table(vocab.tokens.size(), num_bytes);
  std::vector<TokenId> findable;
  findable.reserve(vocab.tokens.size());
  std::string bytes;
  for (std::size_t i = 0; i < vocab.tokens.size(); ++i) {
    const std::string_view token = vocab.tokens[i];
    bytes.clear();
    // A normal token with characters that stand for no byte can be decoded, but never arises.
    if (is_ordinary(vocab.types[i]) && append_bytes_of_chars(token, bytes)) {
      const TokenId id = table.add(bytes);
      if (!bytes.empty()) findable.push_back(id);
    } else {
      table.add(token);
    }
  }
  if (const auto twins = table.insert(findable)) {
    return invalid(fmt::format("tokenizer.ggml.tokens: tokens {} and {} are both '{}'",
                               twins->first, twins->second,
                               vocab.tokens[static_cast<std::size_t>(twins->first)]));
  }
  return table;
}

namespace {

// One line of the list on its way through the look-ups.
struct PendingMerge {
  std::uint32_t rank;
  TokenId merged;  // -1: not one of the row, to be looked up
  std::string_view left;
  std::string_view right;
  std::uint64_t left_hash;
  std::uint64_t right_hash;
  TokenId left_id;
  TokenId right_id;
  std::string decoded;  // left and right, where merged < 0; empty: no part of ordinary text
};

class MergeLoader {
 public:
  MergeLoader(const Vocab& vocab, const TokenTable& table)
      : vocab_(vocab), table_(table), merges_(vocab.merges.size()) {}

  // In batches and steps, so that memory which one step needs is fetched since the step before.
  Result<MergeTable> load() {
    std::array<PendingMerge, 32> batch;
    for (std::size_t start = 0; start < vocab_.merges.size(); start += batch.size()) {
      const std::size_t count = std::min(batch.size(), vocab_.merges.size() - start);
      for (std::size_t i = 0; i < count; ++i) {
        DUNLIN_TRY(prepare(static_cast<std::uint32_t>(start + i), batch[i]));
      }
      for (std::size_t i = 0; i < count; ++i) DUNLIN_TRY(find_parts(batch[i]));
      for (std::size_t i = 0; i < count; ++i) {
        const PendingMerge& merge = batch[i];
        if (merge.merged < 0) continue;
        merges_.insert(merge.left_id, merge.right_id, {merge.rank, merge.merged});
      }
    }
    return std::move(merges_);
  }

 private:
  tl::unexpected<Status> bad_merge(std::uint32_t rank, std::string_view what) const {
    return invalid(
        fmt::format("tokenizer.ggml.merges: entry {} ('{}') {}", rank, vocab_.merges[rank], what));
  }

  Outcome prepare(std::uint32_t rank, PendingMerge& merge) {
    // A space can't be part of a token's name, except that old files may begin with one.
    const std::string_view line = vocab_.merges[rank];
    const std::size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size()) {
      return bad_merge(rank, "is not two tokens with a space between");
    }
    const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
    merge.rank = rank;
    merge.decoded.clear();
    const std::size_t left_size = count_characters(left);
    merge.merged = guess_merged(left, right, left_size + count_characters(right));
    if (merge.merged >= 0) {
      const std::string_view bytes = table_.text(merge.merged);
      merge.left = bytes.substr(0, left_size);
      merge.right = bytes.substr(left_size);
    } else {
      if (!append_bytes_of_chars(left, merge.decoded)) return leave_out(merge);
      if (!append_bytes_of_chars(right, merge.decoded)) return leave_out(merge);
      merge.left = std::string_view(merge.decoded).substr(0, left_size);
      merge.right = std::string_view(merge.decoded).substr(left_size);
    }
    merge.left_hash = TokenTable::hash(merge.left);
    merge.right_hash = TokenTable::hash(merge.right);
    table_.prefetch(merge.left_hash);
    table_.prefetch(merge.right_hash);
    return {};
  }

  // In nearly all vocabularies the n-th merge makes the n-th of a row of ids, or, where a token is
  // listed with each way to make it, the same as the one before. As stored, it is the line without
  // its space, and has a character for each byte.
  TokenId guess_merged(std::string_view left, std::string_view right, std::size_t num_bytes) {
    for (TokenId guess : {expected_, expected_ - 1}) {
      if (guess < 0 || guess >= table_.size()) continue;
      const std::string_view stored = vocab_.tokens[static_cast<std::size_t>(guess)];
      if (stored.size() == left.size() + right.size() && stored.starts_with(left) &&
          stored.ends_with(right) && is_ordinary(vocab_.types[static_cast<std::size_t>(guess)]) &&
          table_.text(guess).size() == num_bytes) {
        expected_ = guess + 1;
        return guess;
      }
    }
    return -1;
  }

  Outcome find_parts(PendingMerge& merge) {
    if (merge.merged < 0 && merge.decoded.empty()) return {};
    merge.left_id = table_.find(merge.left, merge.left_hash);
    merge.right_id = table_.find(merge.right, merge.right_hash);
    if (merge.merged < 0) {
      merge.merged = table_.find(merge.decoded);
      expected_ = merge.merged >= 0 ? merge.merged + 1 : expected_;
    }
    if (merge.left_id < 0 || merge.right_id < 0 || merge.merged < 0) return leave_out(merge);
    merges_.prefetch(merge.left_id, merge.right_id);
    return {};
  }

  // A merge that can't be used must at least name tokens: control or user-defined ones, say.
  Outcome leave_out(PendingMerge& merge) const {
    const std::uint32_t rank = merge.rank;
    merge.merged = -1;
    merge.decoded.clear();
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
