#include "text/unigram_model.h"

#include <algorithm>
#include <limits>

#include "base/utf8.h"

namespace dunlin::hf {
namespace {

constexpr double kUnknownPenalty = 10;  // below the worst token
constexpr std::uint32_t kUnreached = std::numeric_limits<std::uint32_t>::max();

std::vector<std::pair<std::string_view, ByteTrie::Value>> findable_texts(const TokenTable& table) {
  std::vector<std::pair<std::string_view, ByteTrie::Value>> out;
  for (TokenId id = 0; id < table.size(); ++id) {
    const std::string_view text = table.text(id);
    if (!text.empty() && table.find(text) == id) out.emplace_back(text, id);
  }
  return out;
}

}  // namespace

UnigramModel::UnigramModel(const TokenTable& table, std::vector<double> scores, TokenId unknown_id,
                           std::array<TokenId, 256> byte_ids)
    : table_(table),
      scores_(std::move(scores)),
      unknown_score_((scores_.empty() ? 0 : *std::min_element(scores_.begin(), scores_.end())) -
                     kUnknownPenalty),
      unknown_id_(unknown_id),
      byte_ids_(byte_ids),
      trie_(findable_texts(table)) {}

void UnigramModel::find_best_path(std::string_view piece, EncodeScratch& scratch) const {
  auto& path = scratch.path;
  path.assign(piece.size() + 1, {0, kUnreached, -1});
  for (std::size_t begin = 0; begin < piece.size();) {
    const double score_here = path[begin].score;
    const auto offer = [&](std::size_t length, double score, TokenId id) {
      EncodeScratch::PathNode& node = path[begin + length];
      if (node.begin == kUnreached || score_here + score > node.score) {
        node = {score_here + score, static_cast<std::uint32_t>(begin), id};
      }
    };
    const auto length =
        static_cast<std::size_t>(utf8_length(static_cast<unsigned char>(piece[begin])));
    bool has_character = false;
    trie_.for_each_prefix(piece.substr(begin), [&](std::size_t token_length, TokenId id) {
      offer(token_length, scores_[static_cast<std::size_t>(id)], id);
      has_character = has_character || token_length == length;
    });
    if (!has_character) offer(length, unknown_score_, unknown_id_);
    begin += length;
  }
}

void UnigramModel::encode(std::string_view piece, EncodeScratch& scratch,
                          std::vector<TokenId>& ids) const {
  find_best_path(piece, scratch);
  std::vector<TokenId>& ends = scratch.reversed;  // of the path's nodes
  ends.clear();
  for (std::size_t end = piece.size(); end > 0; end = scratch.path[end].begin) {
    ends.push_back(static_cast<TokenId>(end));
  }
  // Unknown characters side by side are one unknown text.
  std::size_t unknown_begin = 0, unknown_end = 0;
  const auto flush_unknown = [&] {
    if (unknown_end > unknown_begin) {
      append_unknown(piece.substr(unknown_begin, unknown_end - unknown_begin), ids);
    }
    unknown_begin = unknown_end = 0;
  };
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const EncodeScratch::PathNode& node = scratch.path[static_cast<std::size_t>(*end)];
    if (node.id == unknown_id_) {
      if (unknown_end == 0) unknown_begin = node.begin;
      unknown_end = static_cast<std::size_t>(*end);
      continue;
    }
    flush_unknown();
    ids.push_back(node.id);
  }
  flush_unknown();
}

void UnigramModel::append_unknown(std::string_view text, std::vector<TokenId>& ids) const {
  const TokenId whole = table_.find(text);
  if (whole >= 0) return ids.push_back(whole);
  const bool has_all_bytes = std::all_of(text.begin(), text.end(), [&](char c) {
    return byte_ids_[static_cast<unsigned char>(c)] >= 0;
  });
  if (!has_all_bytes) return ids.push_back(unknown_id_);
  for (const char c : text) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
}

}  // namespace dunlin::hf
