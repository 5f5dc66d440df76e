// For functions of per-ISA files, which may not stay behind as symbols of their own.
#pragma once

#define DUNLIN_INLINE inline __attribute__((always_inline))
