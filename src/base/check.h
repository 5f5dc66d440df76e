// DUNLIN_CHECK(cond, message): our own bug, never reachable from user input. Always on: prints
// file, line, condition and message to stderr and aborts. DUNLIN_DCHECK: the same in debug and
// sanitizer builds, nothing in release; for hot loops.
#pragma once

namespace dunlin {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const char* message);

}  // namespace dunlin

#define DUNLIN_CHECK(cond, message)                                          \
  do {                                                                       \
    if (!(cond)) [[unlikely]]                                                \
      ::dunlin::check_failed(__FILE__, __LINE__, #cond, message);            \
  } while (false)

#ifdef NDEBUG
#define DUNLIN_DCHECK(cond, message) ((void)0)
#else
#define DUNLIN_DCHECK(cond, message) DUNLIN_CHECK(cond, message)
#endif
