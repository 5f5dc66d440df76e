// Whether a sanitizer is in the build: its allocator maps memory of its own, keeps what is freed,
// and may bring its own operator new.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DUNLIN_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DUNLIN_SANITIZED
#endif
#endif

namespace dunlin::support {

#ifdef DUNLIN_SANITIZED
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace dunlin::support
