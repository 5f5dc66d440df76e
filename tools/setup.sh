#!/usr/bin/env bash
# Installs what Dunlin needs from Debian: tools/setup.sh build|test|all|neon. `test` includes `build`
# and makes the Python environment .venv; `all` adds the sanitizers' and fuzzers' compiler; `neon` is what
# tools/test_neon.sh needs. Does nothing, in no time, where all is there already.
# Only the package installation itself runs as root (through sudo where needed).
set -euo pipefail
. "$(dirname -- "$(readlink -f -- "$0")")/steps.sh"
cd "$here"
need=${1:?usage: tools/setup.sh build|test|all|neon}
case $need in
  build) kinds=build ;;
  test) kinds='build test' ;;
  all) kinds='build test sanitize' ;;
  neon) kinds='build neon' ;;
  *) say "setup: say build, test, all or neon, not '$need'"; exit 2 ;;
esac
wanted=$(awk -v kinds=" $kinds " 'index(kinds, " " $1 " ") {print $2}' tools/packages.txt)

fail() { say "setup: $1"; exit 1; }

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | awk '$1 == "installed" {print $2}')
missing=$(comm -23 <(printf '%s\n' $wanted | sort -u) <(sort -u <<<"$installed"))
if [ -n "$missing" ]; then
  say "setup: installing $(wc -w <<<"$missing") Debian packages:" $missing
  by_hand="As root, run: apt-get update; apt-get install --no-install-recommends $(echo $missing)"
  sudo=
  if [ "$(id -u)" != 0 ]; then
    sudo=sudo
    command -v sudo >/dev/null || fail "this needs root, and there is no sudo. $by_hand"
    sudo -v || fail "this needs root, and sudo refused. $by_hand"
  fi
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  as_root() { $sudo env DEBIAN_FRONTEND=noninteractive "$@" </dev/null 2>&1 | show_progress "setup: installing" "$log"; }
  apt() { as_root apt-get -q -o DPkg::Lock::Timeout=300 -o APT::Status-Fd=1 "$@"; }
  # An interrupted installation is finished first.
  as_root dpkg --configure -a && apt update && apt install -y --no-install-recommends $missing || {
    { grep -m 3 '^W:' "$log" || true; grep -v '^..status:' "$log" | tail -n 8; } >&2
    fail "installing failed (above). Check the network and the sources in /etc/apt, then run this again"
  }
  say "setup: packages are in place"
fi

if [[ $need = test || $need = all ]] && ! cmp -s tests/requirements.txt .venv/requirements.txt; then
  say "setup: making the tests' Python environment, .venv"
  /usr/bin/python3 -m venv --clear .venv &&
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt ||
    fail "pip failed (above). Check the network, then run this again"
  cp tests/requirements.txt .venv/requirements.txt
fi
