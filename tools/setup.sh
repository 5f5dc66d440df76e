#!/usr/bin/env bash
# Installs what Dunlin needs from Debian: tools/setup.sh build|test. `test` includes `build` and
# makes the Python environment .venv. Does nothing, in no time, where all is there already.
# Only the package installation itself runs as root (through sudo where needed).
set -euo pipefail
cd "$(dirname "$0")/.."
need=${1:?usage: tools/setup.sh build|test}
case $need in
  build) wanted=$(awk '$1 == "build" {print $2}' tools/packages.txt) ;;
  test) wanted=$(awk '$1 == "build" || $1 == "test" {print $2}' tools/packages.txt) ;;
  *) echo "setup: say build or test, not '$need'" >&2; exit 2 ;;
esac

say() { printf '%s\n' "$*" >&2; }

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | awk '$1 == "installed" {print $2}')
missing=$(comm -23 <(printf '%s\n' $wanted | sort -u) <(sort -u <<<"$installed"))
if [ -n "$missing" ]; then
  count=$(wc -w <<<"$missing")
  as_root=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
      say "setup: $count packages are missing and neither root nor sudo is at hand. As root, run:"
      say "  apt-get install --no-install-recommends" $missing
      exit 1
    }
    as_root=sudo
  fi
  say "setup: installing $count Debian packages:" $missing
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"; }
  done_count() { grep -c '^Setting up ' "$log" || true; }
  {
    { apt update && apt install -y --no-install-recommends $missing; } >"$log" 2>&1 &
    job=$!
    while kill -0 $job 2>/dev/null; do
      if [ -t 2 ]; then printf '\rsetup: %s packages set up, %ss ' "$(done_count)" "$SECONDS" >&2; fi
      sleep 1
    done
    if ! wait $job; then
      say; tail -n 15 "$log" >&2
      say "setup: installing failed (above). Check the network and /etc/apt/sources.list, then run this again."
      exit 1
    fi
  }
  if [ -t 2 ]; then say; fi
  say "setup: packages are in place"
fi

if [ "$need" = test ]; then
  stamp=.venv/requirements.txt
  if ! cmp -s tests/requirements.txt "$stamp" 2>/dev/null; then
    say "setup: making the tests' Python environment, .venv"
    /usr/bin/python3 -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt ||
      { say "setup: pip failed (above). Check the network, then run this again."; exit 1; }
    cp tests/requirements.txt "$stamp"
  fi
fi
