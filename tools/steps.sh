# What ./run, ./test and tools/setup.sh share; to be sourced.

here=$(dirname -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")")

say() { printf '%s\n' "$*" >&2; }

# show_progress LABEL LOG: keeps what a step prints in LOG and tells its progress, which apt and
# Ninja print as lines: on a terminal on one line, elsewhere at each tenth.
export NINJA_STATUS='[%f of %t %p] '
show_progress() {
  local line percent text tenth=0
  while IFS= read -r line; do
    printf '%s\n' "$line"
    if [[ $line =~ ^\[([^]]*[^ ])\ +([0-9]+)%\] ]]; then
      text=${BASH_REMATCH[1]} percent=${BASH_REMATCH[2]}
    elif [[ $line =~ ^(dl|pm)status:.*:([0-9]+)\.[0-9]+:(.*) ]]; then
      text=${BASH_REMATCH[3]} percent=${BASH_REMATCH[2]}
    else
      continue
    fi
    if [ -t 2 ]; then
      printf '\r\033[K%s: %d%% (%.50s)' "$1" "$percent" "$text" >&2
    elif [ $((percent / 10)) != "$tenth" ]; then
      tenth=$((percent / 10))
      say "$1: $percent% ($text)"
    fi
  done >>"$2"
  if [ -t 2 ]; then printf '\r\033[K' >&2; fi
}

# How many compilers fit: the largest file takes 1 GB.
build_jobs() {
  awk -v cores="$(nproc)" '/^MemAvailable/ {n = int($2 / 1e6); print n < 1 ? 1 : n < cores ? n : cores}' /proc/meminfo
}

# is_configured FOLDER: whether CMake is through with it, and in this checkout, not in one since moved.
is_configured() {
  [ -f "$1/build.ninja" ] && grep -qsxF "CMAKE_HOME_DIRECTORY:INTERNAL=$here" "$1/CMakeCache.txt"
}

# build_cmake FOLDER LOG TARGET...: builds, shows the progress, and ends as the build did.
build_cmake() {
  local folder=$1 log=$2 cache
  shift 2
  # ccache fails where it can't write, as in a home folder that isn't there.
  { cache=$(ccache --get-config cache_dir) && mkdir -p "$cache" && [ -w "$cache" ]; } 2>/dev/null ||
    export CCACHE_DISABLE=1
  cmake --build "$folder" -j "$(build_jobs)" --target "$@" 2>&1 | show_progress "building ${folder##*/}" "$log"
}
