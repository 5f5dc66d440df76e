// Keeps a conversation's beginning token for token, so that the blocks computed for it serve the
// next turn. An answer's text does not always tokenise to the tokens that the model chose; here
// those stand in the next prompt, as the model has seen them.
#pragma once

#include <string>
#include <vector>

#include "dunlin/types.h"
#include "text/tokenizer.h"

namespace dunlin::chat {

class KeptTokens {
 public:
  // `rendered` is the whole conversation as template and tokenizer give it. Where it begins with
  // the last turn's, the prompt has that turn's tokens in their place; else it is `rendered`.
  std::vector<TokenId> prompt(const Tokenizer& tokenizer,
                              const std::vector<TokenId>& rendered) const;

  // A turn that was answered: its rendering, the prompt() made of it, and the answer. `tokens` may
  // be empty where they say more than the text (a stop string cut it).
  void keep(std::vector<TokenId> rendered, std::vector<TokenId> prompt, std::string answer,
            std::vector<TokenId> tokens);
  void clear();

 private:
  std::vector<TokenId> rendered_, prompt_;
  std::string answer_;
  std::vector<TokenId> tokens_;
};

}  // namespace dunlin::chat
