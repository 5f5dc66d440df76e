#include "text/tokenizer_factory.h"

#include "formats/gguf.h"
#include "text/bpe_tokenizer.h"
#include "text/spm_tokenizer.h"
#include "text/unigram_vocab.h"
#include "text/wordpiece_vocab.h"

namespace dunlin {

Result<std::unique_ptr<Tokenizer>> make_tokenizer(const GgufFile& file) {
  DUNLIN_ASSIGN(vocab, read_vocab(file));
  auto tokenizer = make_tokenizer(vocab);
  if (!tokenizer) return tl::unexpected(tokenizer.error().with_prefix(file.path()));
  return tokenizer;
}

Result<std::unique_ptr<Tokenizer>> make_tokenizer(const Vocab& vocab) {
  switch (vocab.kind) {
    case TokenizerKind::kBytePairs: return BpeTokenizer::make(vocab);
    case TokenizerKind::kSentencePiece: return SpmTokenizer::make(vocab);
    case TokenizerKind::kWordPiece: return make_wordpiece_tokenizer(vocab);
    case TokenizerKind::kUnigram: return make_unigram_tokenizer(vocab);
  }
  return fail(StatusCode::kInternal, "a vocabulary of no kind");
}

}  // namespace dunlin
