# SPDX-License-Identifier: Apache-2.0
# Shared by the shell scripts of this directory: progress output, errors, root privileges. Sourced; sets $root to the top of the clone.

set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)

# step TEXT: prints what begins now, with the time.
step() { printf '==> %(%H:%M:%S)T %s\n' -1 "$*"; }

# die TEXT: prints the reason and the remedy, and exits.
die() {
  printf '%s: %s\n' "$(basename -- "$0")" "$*" >&2
  exit 1
}

# as_root COMMAND...: directly for root, with sudo for other users.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo -- "$@"
  else
    die "\"$*\" needs root and there is no sudo here; run this script as root, or install sudo"
  fi
}

# ccache stores its results in HOME; if that is not writable, every compilation would fail.
if [ -z "${CCACHE_DIR:-}" ] && ! { mkdir -p "${HOME:-/nonexistent}/.cache" && [ -w "${HOME:-/nonexistent}/.cache" ]; } 2>/dev/null; then
  export CCACHE_DIR="$root/build/ccache"
fi
