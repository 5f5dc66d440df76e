// A vocabulary as a model file states it, checked but not yet indexed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "dunlin/types.h"
#include "text/prepend_scheme.h"

namespace dunlin {

class GgufFile;

// Numbered as tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // never text: only trusted text can name it
  kUserDefined = 4,  // text that is always this one token
  kUnused = 5,
  kByte = 6,  // "<0x0A>": a byte of a character without a token
};

enum class TokenizerKind {
  kBytePairs,      // "gpt2": byte-level BPE with a list of merges
  kSentencePiece,  // "llama": merges by score, spaces as U+2581, bytes as a fallback
  kWordPiece,      // "bert": the longest token in front; words begin with U+2581
  kUnigram,        // "t5": SentencePiece's other model, the cut with the best sum of scores
};

struct Vocab {
  TokenizerKind kind = TokenizerKind::kBytePairs;
  std::string_view pretokenizer = "default";  // kBytePairs
  // All views are into the file, or what else made this.
  std::vector<std::string_view> tokens;  // as stored; ids are indices
  std::vector<TokenType> types;          // [num_tokens]
  std::vector<float> scores;             // [num_tokens] where kSentencePiece or kUnigram; finite
  std::vector<std::string_view> merges;  // where kBytePairs: "LEFT RIGHT", the first wins

  TokenId bos_id = -1;  // each below tokens.size(), or -1
  TokenId eos_id = -1;
  TokenId unknown_id = -1;
  std::vector<TokenId> eos_ids;  // end of generation: eos first, no duplicates
  std::optional<bool> adds_bos;  // nullopt: what the kind and the pre-tokenizer say
  bool adds_eos = false;
  // What stands around a text, where that is more than BOS and EOS; nullopt: what adds_... say.
  std::optional<std::vector<TokenId>> prefix_ids, suffix_ids;  // kBytePairs and kSentencePiece
  bool adds_space_prefix = true;                               // where kSentencePiece or kUnigram
  // Where kSentencePiece: says more than adds_space_prefix, which puts a space in front of all text
  // between special tokens, be there one already or not.
  std::optional<PrependScheme> prepend_scheme;
  // Where kUnigram: spaces at both ends are dropped, others side by side become one.
  bool removes_extra_spaces = false;
  std::string charsmap;  // where kUnigram: SentencePiece's map of characters (hf_charsmap.h), or ""

  int size() const { return static_cast<int>(tokens.size()); }
};

// Reads tokenizer.ggml.*. Tokens with the name of a turn's end or of another marker of the field
// ("<|im_end|>", "</s>") count as kControl whatever the file says. A Status names the key.
Result<Vocab> read_vocab(const GgufFile& file);

// Gives control type to tokens with a marker's name and fills eos_ids from eos_id, `more_eos_ids`
// and the names of turns' ends. read_vocab's last step, for vocabularies from elsewhere.
void classify_markers(Vocab& vocab, const std::vector<TokenId>& more_eos_ids);

}  // namespace dunlin
