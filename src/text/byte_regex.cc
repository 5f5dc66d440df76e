#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/byte_regex.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>

#include "base/check.h"

namespace dunlin {

struct ByteRegex::Impl {
  pcre2_code* code = nullptr;
  bool has_jit = false;
  ~Impl() { pcre2_code_free(code); }
};

struct ByteRegex::Scratch::Impl {
  pcre2_match_data* match_data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* match_context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* jit_stack = nullptr;

  ~Impl() {
    pcre2_match_data_free(match_data);
    pcre2_match_context_free(match_context);
    pcre2_jit_stack_free(jit_stack);
  }

  void enlarge_stack() {
    if (jit_stack != nullptr) return;
    jit_stack = pcre2_jit_stack_create(64 * 1024, 1024 * 1024, nullptr);
    pcre2_jit_stack_assign(match_context, nullptr, jit_stack);
  }
};

ByteRegex::Scratch::Scratch() : impl_(std::make_unique<Impl>()) {
  DUNLIN_CHECK(impl_->match_data != nullptr && impl_->match_context != nullptr,
               "no memory for PCRE2's match data");
  // A tenth of PCRE2's own limit: some 5 ms. Sensible expressions need a few steps a character.
  pcre2_set_match_limit(impl_->match_context, 1'000'000);
}
ByteRegex::Scratch::~Scratch() = default;

ByteRegex::ByteRegex(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ByteRegex::~ByteRegex() = default;
ByteRegex::ByteRegex(ByteRegex&&) noexcept = default;
ByteRegex& ByteRegex::operator=(ByteRegex&&) noexcept = default;

Result<ByteRegex> ByteRegex::compile(const std::string& pattern) {
  auto impl = std::make_unique<Impl>();
  int error = 0;
  PCRE2_SIZE offset = 0;
  impl->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                             PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C, &error,
                             &offset, nullptr);
  if (impl->code == nullptr) {
    PCRE2_UCHAR words[256] = {};
    pcre2_get_error_message(error, words, sizeof words);
    return invalid(fmt::format("expression '{}', byte {}: {}", pattern, offset,
                               reinterpret_cast<const char*>(words)));
  }
  impl->has_jit = pcre2_jit_compile(impl->code, PCRE2_JIT_COMPLETE) == 0;
  return ByteRegex(std::move(impl));
}

bool ByteRegex::find(std::string_view subject, std::size_t start, Scratch& scratch, Match& match,
                     bool or_empty) const {
  Scratch::Impl& s = *scratch.impl_;
  const std::uint32_t options = or_empty ? 0 : PCRE2_NOTEMPTY;
  const auto search = [&](std::size_t length) {
    const auto* text = reinterpret_cast<PCRE2_SPTR>(subject.data());
    return impl_->has_jit ? pcre2_jit_match(impl_->code, text, length, start, options, s.match_data,
                                            s.match_context)
                          : pcre2_match(impl_->code, text, length, start, options, s.match_data,
                                        s.match_context);
  };
  int count = search(subject.size());
  if (count == PCRE2_ERROR_JIT_STACKLIMIT) {
    s.enlarge_stack();
    count = search(subject.size());
  }
  if (count == PCRE2_ERROR_NOMATCH) return false;
  if (count < 0) {
    const std::size_t end = std::min(subject.size(), start + kCutLength);
    if (search(end) < 0) {
      match = {start, end};
      return true;
    }
  }
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(s.match_data);
  match = {offsets[0], offsets[1]};
  return true;
}

}  // namespace dunlin
