#include "chat/kept_tokens.h"

#include <algorithm>
#include <span>
#include <utility>

namespace dunlin::chat {
namespace {

// How many of `ids` spell `text`; 0 where it does not end at the border of a token.
std::size_t num_tokens_of(const Tokenizer& tokenizer, std::span<const TokenId> ids,
                          std::string_view text) {
  std::size_t num = 0;
  while (num < ids.size() && !text.empty()) {
    const std::string bytes = tokenizer.token_bytes(ids[num]);
    if (!text.starts_with(bytes)) return 0;
    text.remove_prefix(bytes.size());
    ++num;
  }
  return text.empty() ? num : 0;
}

}  // namespace

std::vector<TokenId> KeptTokens::prompt(const Tokenizer& tokenizer,
                                        const std::vector<TokenId>& rendered) const {
  if (rendered.size() < rendered_.size() ||
      !std::equal(rendered_.begin(), rendered_.end(), rendered.begin()))
    return rendered;
  auto rest = std::span(rendered).subspan(rendered_.size());
  std::vector<TokenId> prompt = prompt_;
  const std::size_t spelled = tokens_.empty() ? 0 : num_tokens_of(tokenizer, rest, answer_);
  if (spelled > 0) {
    prompt.insert(prompt.end(), tokens_.begin(), tokens_.end());
    rest = rest.subspan(spelled);
  }
  prompt.insert(prompt.end(), rest.begin(), rest.end());
  return prompt;
}

void KeptTokens::keep(std::vector<TokenId> rendered, std::vector<TokenId> prompt,
                      std::string answer, std::vector<TokenId> tokens) {
  rendered_ = std::move(rendered);
  prompt_ = std::move(prompt);
  answer_ = std::move(answer);
  tokens_ = std::move(tokens);
}

void KeptTokens::clear() { *this = KeptTokens(); }

}  // namespace dunlin::chat
