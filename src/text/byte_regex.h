// A compiled expression over bytes: PCRE2 with its JIT compiler, wrapped here and nowhere else.
// Bytes are bytes: no UTF mode, no Unicode properties, no locale.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "dunlin/status.h"

namespace dunlin {

class ByteRegex {
 public:
  struct Match {
    std::size_t begin;
    std::size_t end;
  };

  // What one thread needs to search: its own match data and, once asked for, a larger stack.
  class Scratch {
   public:
    Scratch();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

   private:
    friend class ByteRegex;
    struct Impl;
    std::unique_ptr<Impl> impl_;
  };

  // Characters after which a search that costs too much (PCRE2's match, heap or stack limit) is
  // cut.
  static constexpr std::size_t kCutLength = 1024;

  // kInvalidArgument with PCRE2's words and the byte.
  static Result<ByteRegex> compile(const std::string& pattern);
  ~ByteRegex();
  ByteRegex(ByteRegex&&) noexcept;
  ByteRegex& operator=(ByteRegex&&) noexcept;

  // The first match from `start` on that is not empty (or is, with `or_empty`); false: none.
  // Lookbehind sees what stands before `start`. A search that hits a limit is repeated on the next
  // kCutLength bytes alone; where that hits it too, or finds nothing, these bytes are the match, so
  // that a caller who goes on behind it always gets on. Thread-safe; `scratch` is one thread's.
  bool find(std::string_view subject, std::size_t start, Scratch& scratch, Match& match,
            bool or_empty = false) const;

 private:
  struct Impl;
  explicit ByteRegex(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dunlin
