#include "cpu/isa.h"

#include <array>
#include <cstddef>
#include <string>

#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace dunlin {
namespace {

struct IsaName {
  Isa isa;
  std::string_view name;
};
constexpr std::array kNames = {
    IsaName{Isa::kReference, "reference"},
    IsaName{Isa::kReferenceQ8, "reference-q8"},
    IsaName{Isa::kPortable, "portable"},
    IsaName{Isa::kNeon, "neon"},
    IsaName{Isa::kAvx2, "avx2"},
    IsaName{Isa::kAvx512, "avx512"},
    IsaName{Isa::kAmx, "amx"},
};

// Every set of this architecture, each needing all before it, and how many of them this machine
// has.
#if defined(__aarch64__)

constexpr std::array kAll = {Isa::kReference, Isa::kReferenceQ8, Isa::kPortable, Isa::kNeon};

std::size_t num_supported() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 ? 4 : 3; }

#elif defined(__x86_64__)

constexpr std::array kAll = {Isa::kReference, Isa::kReferenceQ8, Isa::kPortable,
                             Isa::kAvx2,      Isa::kAvx512,      Isa::kAmx};

// The system keeps tiles only for programs that ask for them, before the first use
// (arch/x86/xstate in the kernel's documentation). Threads have what their program has.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM of <asm/prctl.h>
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// The builtins also ask XGETBV whether the system saves the wide registers.
std::size_t count_supported() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c")) {
    return 3;
  }
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vnni");
  if (!has_avx512) return 4;
  const bool has_amx = __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8");
  return has_amx && may_use_tiles() ? 6 : 5;
}

std::size_t num_supported() {
  static const std::size_t count = count_supported();
  return count;
}

#else

constexpr std::array kAll = {Isa::kReference, Isa::kReferenceQ8, Isa::kPortable};

std::size_t num_supported() { return 3; }

#endif

}  // namespace

std::string_view isa_name(Isa isa) { return kNames[static_cast<std::size_t>(isa)].name; }

std::span<const Isa> supported_isas() { return std::span(kAll).first(num_supported()); }

Isa best_isa() { return supported_isas().back(); }

Result<Isa> parse_isa(std::string_view name) {
  if (name == "auto") return best_isa();
  std::string known = "auto";
  for (const Isa isa : supported_isas()) {
    if (name == isa_name(isa)) return isa;
    known.append(", ").append(isa_name(isa));
  }
  for (const IsaName& entry : kNames) {
    if (name == entry.name) {
      return invalid("instruction set '" + std::string(name) +
                     "' is not available on this processor; choose one of " + known);
    }
  }
  return invalid("unknown instruction set '" + std::string(name) + "'; choose one of " + known);
}

}  // namespace dunlin
