#include "cpu/isa.h"

#include <array>
#include <cstddef>
#include <string>

namespace dunlin {
namespace {

struct IsaName {
  Isa isa;
  std::string_view name;
};
constexpr std::array kNames = {
    IsaName{Isa::kReference, "reference"}, IsaName{Isa::kReferenceQ8, "reference-q8"},
    IsaName{Isa::kPortable, "portable"},   IsaName{Isa::kAvx2, "avx2"},
    IsaName{Isa::kAvx512, "avx512"},
};

// The builtins also ask XGETBV whether the system saves the wide registers.
bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
#else
  return false;
#endif
}

bool has_avx512() {
#if defined(__x86_64__)
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

// kNames is in the order of the enumeration, so what runs here is a prefix of it.
constexpr std::array kAll = {Isa::kReference, Isa::kReferenceQ8, Isa::kPortable, Isa::kAvx2,
                             Isa::kAvx512};

}  // namespace

std::string_view isa_name(Isa isa) { return kNames[static_cast<std::size_t>(isa)].name; }

std::span<const Isa> supported_isas() {
  const std::size_t count = has_avx512() ? 5 : has_avx2() ? 4 : 3;
  return std::span(kAll).first(count);
}

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
