// Status and Result<T>: how every fallible call of the project answers.
//
// Three kinds of failure, three mechanisms:
//   wrong input (a file, a request, a flag)  -> Result<T>, a Status with a message for the user
//   no room (queue full, no free blocks)     -> an ordinary return value, documented at the call
//   our own bug                              -> DUNLIN_CHECK (base/check.h)
// No exceptions cross a folder; exceptions of a library are caught where the library is wrapped.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace dunlin {

// One table in api/errors maps these to HTTP; one in cli/ maps them to exit codes.
enum class StatusCode {
  kInvalidArgument,    // the caller's input is wrong and will stay wrong
  kNotFound,           // a file, model or name that does not exist
  kAlreadyExists,      // refuses to overwrite
  kPermissionDenied,   // credentials or file permissions
  kResourceExhausted,  // a limit: queue, memory, disk
  kUnavailable,        // try again later: shutting down, network
  kUnimplemented,      // a known feature that is not there yet
  kDataLoss,           // corrupt bytes: checksum, truncated file
  kCancelled,
  kInternal,
};

// Lower-case words, stable: "invalid argument", "not found", ...
std::string_view status_code_name(StatusCode code);

// An error. `message` is written for the user: what is wrong, where, and what to do; one line,
// no trailing full stop, no trailing newline.
class [[nodiscard]] Status {
 public:
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same error with "PREFIX: " in front; used to add the file or field on the way up.
  Status with_prefix(std::string_view prefix) const {
    return Status(code_, std::string(prefix) + ": " + message_);
  }

 private:
  StatusCode code_;
  std::string message_;
};

template <typename T>
using Result = tl::expected<T, Status>;

// What a function with nothing to give back returns: Result<void>.
using Outcome = Result<void>;

inline tl::unexpected<Status> fail(StatusCode code, std::string message) {
  return tl::unexpected<Status>(Status(code, std::move(message)));
}
inline tl::unexpected<Status> invalid(std::string message) {
  return fail(StatusCode::kInvalidArgument, std::move(message));
}

}  // namespace dunlin

// DUNLIN_TRY(expr): returns the error of `expr` (a Result) from the enclosing function.
// DUNLIN_ASSIGN(var, expr): the same, else moves the value into a new `auto var`.
#define DUNLIN_CONCAT_INNER(a, b) a##b
#define DUNLIN_CONCAT(a, b) DUNLIN_CONCAT_INNER(a, b)
#define DUNLIN_TRY(expr)                                                        \
  do {                                                                          \
    auto dunlin_try_result = (expr);                                            \
    if (!dunlin_try_result)                                                     \
      return tl::unexpected<::dunlin::Status>(std::move(dunlin_try_result).error()); \
  } while (false)
#define DUNLIN_ASSIGN(var, expr) DUNLIN_ASSIGN_IMPL(DUNLIN_CONCAT(result_, __LINE__), var, expr)
#define DUNLIN_ASSIGN_IMPL(tmp, var, expr)                                        \
  auto tmp = (expr);                                                              \
  if (!tmp) return tl::unexpected<::dunlin::Status>(std::move(tmp).error());      \
  auto var = std::move(*tmp)
