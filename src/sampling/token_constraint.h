// TokenConstraint: what limits the next token of one request from outside the sampler, such as a
// grammar. Called from the engine thread only, so it needs no locks; it must be quick.
#pragma once

#include <cstdint>
#include <span>

#include "dunlin/types.h"

namespace dunlin {

class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // Sets bit i % 32 of word i / 32 where token i may come next, and clears the others. End tokens
  // are tokens like others: allowed only where the output may end.
  virtual void fill_bitmask(std::span<std::uint32_t> bitmask) = 0;  // [ceil(vocab_size / 32)]

  // `token` was drawn from the last bitmask.
  virtual void accept(TokenId token) = 0;

  // Takes back the last num_tokens accepted ones (drafts that were not confirmed).
  virtual void rollback(int num_tokens) = 0;
};

}  // namespace dunlin
