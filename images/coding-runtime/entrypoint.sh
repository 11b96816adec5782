#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the user agbox with the uid HOST_UID and the gid HOST_GID, so that files in mounts belong to the user of the
# host, and executes the arguments as that user. It may run any number of times in the same container, and after
# another program has made the user. In a sandbox of agboxd that program is agbox-guest; then there is little to do.
#
#   HOST_UID, HOST_GID                   required
#   AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS   more groups of the user, for example 44,109
set -eu

user=agbox
home=/home/agbox
shell=${RUNTIME_SHELL:-/bin/bash} # of images that have another one

fail() {
  echo "ERROR: $*" >&2
  exit 1
}

is_number() {
  case $1 in
    '' | *[!0-9]* | 0?*) false ;;
  esac
}

# Whatever can be wrong is found before anything is changed.
check() {
  if [ -z "${HOST_UID:-}" ] || [ -z "${HOST_GID:-}" ]; then
    fail "HOST_UID and HOST_GID must be set"
  fi
  is_number "$HOST_UID" || fail "HOST_UID must be a number, not '$HOST_UID'"
  is_number "$HOST_GID" || fail "HOST_GID must be a number, not '$HOST_GID'"
  [ "$(id -u)" = 0 ] || fail "the entrypoint must run as root, not as uid $(id -u); start the container without --user"
  [ "$HOST_UID" != 0 ] || return 0
  case ${AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS:-} in
    *[!0-9,]*) fail "AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS must be numbers separated by commas, not '$AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS'" ;;
  esac
}

# entry DATABASE KEY FIELD: that field of the entry; empty if there is none.
entry() {
  getent "$1" "$2" | cut -d : -f "$3"
}

# make_group NAME GID: unless a group has that gid.
make_group() {
  [ -z "$(entry group "$2" 1)" ] || return 0
  if [ -z "$(entry group "$1" 1)" ]; then
    groupadd --gid "$2" "$1"
  else
    groupadd --gid "$2" "$1-$2"
  fi
}

make_user() {
  # For root the name is an alias, and the accounts of the image stay as they are.
  if [ "$HOST_UID" = 0 ]; then
    [ "$(entry passwd "$user" 3)" != 0 ] || return 0
    sed -i "/^$user:/d" /etc/passwd
    echo "$user:x:0:$HOST_GID::$home:$shell" >>/etc/passwd
    return 0
  fi
  make_group "$user" "$HOST_GID"
  # Someone else's uid: of an image that was derived from this one.
  case $(entry passwd "$user" 3) in
    '' | "$HOST_UID") ;;
    *) userdel "$user" ;;
  esac
  former=$(entry passwd "$HOST_UID" 1)
  if [ -z "$former" ]; then
    useradd --no-create-home --no-user-group --no-log-init --key UID_MIN="$HOST_UID" --key UID_MAX="$HOST_UID" \
      --uid "$HOST_UID" --gid "$HOST_GID" --home-dir "$home" --shell "$shell" "$user"
  elif [ "$former" != "$user" ]; then
    usermod --login "$user" --gid "$HOST_GID" --home "$home" --shell "$shell" "$former"
  else
    # usermod prints that there is nothing to change.
    usermod --gid "$HOST_GID" --home "$home" --shell "${RUNTIME_SHELL:-$(entry passwd "$user" 7)}" "$user" >/dev/null
  fi
  for gid in $(printf '%s' "${AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS:-}" | tr , ' '); do
    make_group "$user-supplemental-$gid" "$gid"
    usermod --append --groups "$(entry group "$gid" 1)" "$user"
  done
}

# own DIRECTORY: if it exists. Not a mount: it belongs to the host, which has its own idea of the owner.
own() {
  if [ -d "$1" ] && [ ! -L "$1" ] && ! mountpoint -q "$1"; then
    chown "$HOST_UID:$HOST_GID" "$1"
  fi
}

make_directories() {
  mkdir -p "$home" /workspace
  for directory in "$home" /workspace "$home/.claude" "$home/.codex" "$home/.agents" "$home/.cache" "$home/.npm" "$home/.config"; do
    own "$directory"
  done
  # As useradd does for a new home, but mounts may have made it.
  for file in /etc/skel/.[!.]* /etc/skel/*; do
    copy=$home/${file##*/}
    if [ -e "$file" ] && [ ! -e "$copy" ] && [ ! -L "$copy" ]; then
      cp -R "$file" "$copy"
      chown -R -h "$HOST_UID:$HOST_GID" "$copy"
    fi
  done
}

allow_sudo() {
  echo "$user ALL=(ALL:ALL) NOPASSWD: ALL" >/etc/sudoers.d/.runtime-user
  chmod 0440 /etc/sudoers.d/.runtime-user
  mv -f /etc/sudoers.d/.runtime-user /etc/sudoers.d/runtime-user
}

# The socket of the host's ssh-agent. Its mode is the host's too, so it is changed only if the user could not use it.
share_ssh_agent() {
  if [ -S /ssh-agent ] && ! gosu "$user" test -w /ssh-agent; then
    chmod 0666 /ssh-agent
  fi
}

check
make_user
make_directories
allow_sudo
share_ssh_agent
export HOME="$home" USER="$user"
# By its name: gosu gives a number none of the supplemental groups.
exec gosu "$user" "$@"
