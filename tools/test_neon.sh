#!/usr/bin/env bash
# Builds the layers up to the engine for 64-bit Arm with Debian's cross compiler and runs their unit
# tests in qemu-user: the kernels of every instruction set of an Arm machine and the tiny models.
# Takes about half an hour; not a part of ./test.
#   tools/test_neon.sh            all of it
#   tools/test_neon.sh -R Gemm    only what these flags of ctest choose
# Speed says nothing there, and an x86 machine's strict order of memory hides races that Arm shows.
set -euo pipefail
. "$(dirname -- "$(readlink -f -- "$0")")/steps.sh"
cd "$here"
case ${1:-} in -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;; esac

export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1
tools/setup.sh neon
folder=build/neon
mkdir -p "$folder"
is_configured "$folder" || rm -f "$folder/CMakeCache.txt"
cmake --preset neon >"$folder/build.log" 2>&1 && build_cmake "$folder" "$folder/build.log" unit_tests ||
  { tail -n 60 "$folder/build.log"; exit 1; }

run() { ctest --test-dir "$folder" -L unit -j "$(nproc)" --output-on-failure --no-tests=error "$@"; }

# QEMU's own CPU has all extensions; on it neon must be among what the tests go through.
grep -q '/neon$' <<<"$(ctest --test-dir "$folder" -N)" ||
  { say "test_neon: the emulated CPU has no dot products; is QEMU_CPU set?"; exit 1; }
say "== on a CPU with dot products"
run "$@"
# A Cortex-A72 lacks them: portable code serves it.
say "== on a CPU without"
QEMU_CPU=cortex-a72 run -R '^Isa\.|^Gemm\.NonFinite|^Gated|^Softmax'
