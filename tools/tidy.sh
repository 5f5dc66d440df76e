#!/usr/bin/env bash
# clang-tidy, with the checks of .clang-tidy: tools/tidy.sh [FILE.cc ...]
# Without files: those of src/ that differ from main, or all of src/ with --all. Needs build/release
# (./run --help builds it). Exit code 1 where something was found.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tidy=$(command -v clang-tidy-19) || { echo "tidy: clang-tidy-19 is missing (apt-get install clang-tidy-19)" >&2; exit 2; }
[ -f build/release/compile_commands.json ] || { echo "tidy: build/release is missing; ./run --help builds it" >&2; exit 2; }
case ${1:-} in
  --all) mapfile -t files < <(git ls-files 'src/*.cc') ;;
  '') mapfile -t files < <(git diff --name-only --diff-filter=d main -- 'src/*.cc') ;;
  *) files=("$@") ;;
esac
[ ${#files[@]} -gt 0 ] || { echo "tidy: no file of src/ differs from main"; exit 0; }
printf '%s\n' "${files[@]}" |
  xargs -P "$(nproc)" -n 1 "$tidy" -p build/release --quiet --extra-arg=-Wno-unknown-warning-option
