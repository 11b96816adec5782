#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the user as coding-runtime does, and as that user OpenClaw's configuration if there is none yet; then executes
# the arguments. The configuration is on a mount of the host as a rule, so this happens once.
set -eu

if [ "${1:-}" != --as-user ]; then
  exec /usr/local/bin/entrypoint.sh "$0" --as-user "$@"
fi
shift

configuration=${OPENCLAW_CONFIG_PATH:-${OPENCLAW_STATE_DIR:-$HOME/.openclaw}/openclaw.json}
if [ ! -e "$configuration" ]; then
  # Reached through a published port of the sandbox, and asking for a token. Models and channels are the user's to choose.
  openclaw onboard --non-interactive --accept-risk --mode local --auth-choice skip \
    --gateway-port 18789 --gateway-bind lan --gateway-auth token --suppress-gateway-token-output \
    --skip-daemon --skip-channels --skip-skills --skip-search --skip-hooks --skip-health --skip-ui
fi
exec "$@"
