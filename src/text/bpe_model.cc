#include "text/bpe_model.h"

#include "base/utf8.h"

namespace dunlin::hf {
namespace {

constexpr std::string_view kSpace = "\u2581";

}  // namespace

BpeModel::BpeModel(const TokenTable& table, MergeTable merges, BpeOptions options)
    : table_(table),
      merges_(std::move(merges)),
      options_(std::move(options)),
      has_affixes_(!options_.continuing_prefix.empty() || !options_.end_suffix.empty()),
      cuts_at_spaces_(!has_affixes_ && options_.merges_plain_only && table_.find(kSpace) >= 0),
      whole_tokens_(table.size()) {
  std::string character;
  for (std::size_t c = 0; c < character_ids_.size(); ++c) {
    character.clear();
    append_utf8(character, static_cast<char32_t>(c));
    character_ids_[c] = table_.find(character);
  }
  if (cuts_at_spaces_) find_inner_spaces();
}

void BpeModel::find_inner_spaces() {
  for (TokenId id = 0; id < table_.size(); ++id) {
    const std::string_view text = table_.text(id);
    for (std::size_t pos = text.find(kSpace, 1); pos != std::string_view::npos;
         pos = text.find(kSpace, pos + 1)) {
      before_inner_space_[static_cast<unsigned char>(text[pos - 1])] = true;
    }
  }
}

void BpeModel::encode(std::string_view piece, EncodeScratch& scratch,
                      std::vector<TokenId>& ids) const {
  if (options_.whole_pieces_first) {
    const TokenId whole = table_.find(piece);
    if (whole >= 0) return ids.push_back(whole);
  }
  std::size_t begin = 0;
  for (std::size_t pos = 0; cuts_at_spaces_;) {
    pos = piece.find(kSpace, pos + 1);
    if (pos == std::string_view::npos) break;
    if (before_inner_space_[static_cast<unsigned char>(piece[pos - 1])]) continue;
    encode_part(piece.substr(begin, pos - begin), scratch.merges, ids);
    begin = pos;
  }
  encode_part(piece.substr(begin), scratch.merges, ids);
}

void BpeModel::encode_part(std::string_view part, MergeWorkspace& work,
                           std::vector<TokenId>& ids) const {
  const TokenId whole = has_affixes_ ? -1 : table_.find(part);
  if (whole >= 0 && whole_tokens_.get(whole) == WholeTokenCache::kWhole) {
    return ids.push_back(whole);
  }
  start_symbols(part, work);
  merge_symbols(work, [&](const MergeSymbol& left, const MergeSymbol& right) {
    return merges_.find(left.id, right.id);
  });
  if (whole >= 0) {
    whole_tokens_.set(whole, work.symbols.size() == 1 && work.symbols[0].id == whole);
  }
  for (const MergeSymbol& symbol : work.symbols) ids.push_back(symbol.id);
}

TokenId BpeModel::find_character(std::string_view part, std::uint32_t begin,
                                 std::uint32_t end) const {
  const std::string_view character = part.substr(begin, end - begin);
  if (!has_affixes_) {
    const char32_t c = decode_valid_utf8(&character[0]);
    return c < character_ids_.size() ? character_ids_[c] : table_.find(character);
  }
  std::string affixed = begin > 0 ? options_.continuing_prefix : std::string();
  affixed += character;
  if (end == part.size()) affixed += options_.end_suffix;
  return table_.find(affixed);
}

bool BpeModel::append_bytes(std::string_view character, std::uint32_t begin,
                            MergeWorkspace& work) const {
  for (const char c : character) {
    if (options_.byte_ids[static_cast<unsigned char>(c)] < 0) return false;
  }
  for (const char c : character) {
    work.symbols.push_back({options_.byte_ids[static_cast<unsigned char>(c)], begin, begin + 1});
    ++begin;
  }
  return true;
}

void BpeModel::start_symbols(std::string_view part, MergeWorkspace& work) const {
  work.symbols.clear();
  bool unknown_waits = false;
  MergeSymbol unknown{};
  const auto flush_unknown = [&] {
    if (unknown_waits) work.symbols.push_back(unknown);
    unknown_waits = false;
  };
  for (std::uint32_t begin = 0; begin < part.size();) {
    const std::uint32_t end =
        begin + static_cast<std::uint32_t>(utf8_length(static_cast<unsigned char>(part[begin])));
    const TokenId id = find_character(part, begin, end);
    if (id >= 0) {
      flush_unknown();
      work.symbols.push_back({id, begin, end});
    } else if (append_bytes(part.substr(begin, end - begin), begin, work)) {
      // An unknown one that waits comes behind them, as in the reference.
    } else if (options_.unknown_id >= 0) {
      if (unknown_waits && options_.fuse_unknown) {
        unknown.end = end;
      } else {
        flush_unknown();
        unknown = {options_.unknown_id, begin, end};
        unknown_waits = true;
      }
    }
    begin = end;
  }
  flush_unknown();
}

}  // namespace dunlin::hf
