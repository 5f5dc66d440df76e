#include "text/tokenizer_factory.h"

#include "formats/gguf.h"
#include "text/bpe_tokenizer.h"
#include "text/spm_tokenizer.h"

namespace dunlin {

Result<std::unique_ptr<Tokenizer>> make_tokenizer(const GgufFile& file) {
  DUNLIN_ASSIGN(vocab, read_vocab(file));
  auto tokenizer = make_tokenizer(vocab);
  if (!tokenizer) return tl::unexpected(tokenizer.error().with_prefix(file.path()));
  return tokenizer;
}

Result<std::unique_ptr<Tokenizer>> make_tokenizer(const Vocab& vocab) {
  return vocab.kind == TokenizerKind::kBytePairs ? BpeTokenizer::make(vocab)
                                                 : SpmTokenizer::make(vocab);
}

}  // namespace dunlin
