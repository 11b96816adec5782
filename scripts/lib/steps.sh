# SPDX-License-Identifier: Apache-2.0
# What the shell scripts of this folder share: announced steps, one-sentence errors, root where it
# is needed. Sourced, never run; sets $root to the top of the clone.

set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)

# step TEXT: says what begins now, with the time of day, so that a long step shows where time goes.
step() { printf '==> %(%H:%M:%S)T %s\n' -1 "$*"; }

# die TEXT: the reason and the remedy in one sentence.
die() {
  printf '%s: %s\n' "$(basename -- "$0")" "$*" >&2
  exit 1
}

# as_root COMMAND...: as it is for root, through sudo for everybody else.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo -- "$@"
  else
    die "\"$*\" needs root and there is no sudo here; run this script as root, or install sudo"
  fi
}

# ccache keeps its results below HOME; where that cannot be written, it would fail every compile.
if [ -z "${CCACHE_DIR:-}" ] && ! { mkdir -p "${HOME:-/nonexistent}/.cache" && [ -w "${HOME:-/nonexistent}/.cache" ]; } 2>/dev/null; then
  export CCACHE_DIR="$root/build/ccache"
fi
