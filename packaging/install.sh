#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs agents-sandbox for one user from its tarball, or removes it again. It shows what it will do and asks first.
#
#   sh install.sh [TARBALL] [--prefix DIR] [--yes]
#   sh install.sh --uninstall [--prefix DIR] [--yes]
#
# TARBALL is by default the one next to this script. SHA256SUMS of the same release has to be next to the tarball.
# --prefix is by default ~/.local. --yes does not ask, and leaves out the one step that needs root, which it shows.
# Shell profiles are never changed. An upgrade is an installation of another version over this one.
set -eu
umask 022

work=
unfinished=

die() {
  printf 'install.sh: %s\n' "$*" >&2
  exit 1
}

clean_up() {
  [ -z "$work" ] || rm -rf -- "$work"
  [ -z "$unfinished" ] || rm -f -- "$unfinished"
}

# ask QUESTION: true if the answer is yes.
ask() {
  [ "$yes" = no ] || return 0
  [ -t 0 ] || die "it asks before it does anything, and there is no terminal: pass --yes"
  printf '%s [y/N] ' "$1"
  read -r answer || answer=
  case $answer in [yY] | [yY][eE][sS]) return 0 ;; esac
  return 1
}

usage() { sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"; }

# --- what is there ---------------------------------------------------------------------------------

# installed_version: of this prefix; nothing if there is none.
installed_version() { [ ! -f "$own/VERSION" ] || cat "$own/VERSION"; }

# running_daemon AGBOX FIELD: of the daemon of this user, whatever it was installed by; nothing if none runs.
running_daemon() {
  status=$("$1" daemon status 2>/dev/null) || return 0
  printf '%s\n' "$status" | sed -n "s/^$2=//p"
}

# is_of_this_prefix PROCESS: the daemon cannot be inspected by others, but its command line can.
is_of_this_prefix() {
  [ "$(tr '\0' '\n' 2>/dev/null <"/proc/$1/cmdline" | head -n 1)" = "$prefix/bin/agboxd" ]
}

sum_of() { sha256sum <"$1" | cut -d ' ' -f 1; }

# is_installed FILE: it is as this script installed it.
is_installed() { [ -f "$1" ] && [ -f "$manifest" ] && grep -qxF "$(sum_of "$1")  $1" "$manifest"; }

# --- installation ----------------------------------------------------------------------------------

architecture() {
  case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) uname -m ;;
  esac
}

find_tarball() {
  [ -z "$tarball" ] || return 0
  here=$(cd -- "$(dirname -- "$0")" && pwd -P)
  for candidate in "$here"/agents-sandbox-*-linux-"$(architecture)".tar.gz; do
    [ -z "$tarball" ] || die "there are several tarballs in $here; name one: sh install.sh TARBALL"
    [ ! -f "$candidate" ] || tarball=$candidate
  done
  [ -n "$tarball" ] || die "there is no agents-sandbox-VERSION-linux-$(architecture).tar.gz in $here; name it: sh install.sh TARBALL"
}

verify_tarball() {
  [ -f "$tarball" ] || die "$tarball does not exist"
  directory=$(cd -- "$(dirname -- "$tarball")" && pwd -P)
  name=$(basename -- "$tarball")
  case $name in
    agents-sandbox-*-linux-"$(architecture)".tar.gz) ;;
    *) die "$name is not named agents-sandbox-VERSION-linux-$(architecture).tar.gz: it is of another machine, or something else" ;;
  esac
  sums=$directory/SHA256SUMS
  [ -f "$sums" ] || die "$sums does not exist; download it from the same release, it has the checksum of $name"
  wanted=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\$/\1/p" "$sums")
  [ -n "$wanted" ] || die "$sums has no line for $name; download both from the same release"
  found=$(sum_of "$directory/$name")
  [ "$found" = "$wanted" ] || die "$name has the checksum $found, but SHA256SUMS has $wanted: it is damaged or was changed; nothing was installed, download it again"
  tarball=$directory/$name
}

# place_of FILE: where a file of the tarball goes. The unit goes where systemd looks for units that a user installed.
place_of() {
  case $1 in
    lib/systemd/user/*) echo "$units/${1##*/}" ;;
    install.sh | VERSION) echo "$own/$1" ;;
    *) echo "$prefix/$1" ;;
  esac
}

# unpack: the tree in $work/tree, and what is to be installed in $work/files: SHA256  FILE PLACE.
unpack() {
  mkdir "$work/tree"
  tar -x -z -f "$tarball" -C "$work/tree" --strip-components=1 --no-same-owner
  unit=$work/tree/lib/systemd/user/agboxd.service
  sed "s|/usr/bin/agboxd|$prefix/bin/agboxd|" "$unit" >"$unit.new"
  mv "$unit.new" "$unit"
  (cd "$work/tree" && find . -type f | sed 's|^\./||' | LC_ALL=C sort) >"$work/names"
  while IFS= read -r file; do
    printf '%s %s %s\n' "$(sum_of "$work/tree/$file")" "$file" "$(place_of "$file")"
  done <"$work/names" >"$work/files"
}

# is_up_to_date: every file is in place and unchanged.
is_up_to_date() {
  [ -f "$manifest" ] || return 1
  while read -r sum file place; do
    [ -f "$place" ] && [ "$(sum_of "$place")" = "$sum" ] || return 1
  done <"$work/files"
}

refuse_foreign_files() {
  while read -r _ _ place; do
    [ ! -e "$place" ] && [ ! -L "$place" ] && continue
    grep -q "^[0-9a-f]*  $place\$" "$manifest" 2>/dev/null ||
      die "$place exists and was not installed by this script; move it away, or choose another --prefix"
  done <"$work/files"
}

# missing_directories: those that it will create, with their parents first.
missing_directories() {
  while read -r _ _ place; do
    directory=$(dirname -- "$place")
    while [ ! -d "$directory" ]; do
      printf '%s\n' "$directory"
      directory=$(dirname -- "$directory")
    done
  done <"$work/files" | LC_ALL=C sort -u
}

# The manifest is complete before the first file is, so that an installation that was interrupted can be removed too.
write_manifest() {
  [ ! -f "$manifest" ] || cat "$manifest" >"$work/old"
  {
    [ ! -f "$work/old" ] || cat "$work/old"
    sed 's/^/directory  /' "$work/directories"
    while read -r sum _ place; do printf '%s  %s\n' "$sum" "$place"; done <"$work/files"
  } | LC_ALL=C sort -u >"$work/manifest"
  while IFS= read -r directory; do
    # The daemon keeps its data there, for its user alone.
    mode=0755
    [ "$directory" != "$data/agents-sandbox" ] || mode=0700
    [ -d "$directory" ] || mkdir -m "$mode" "$directory"
  done <"$work/directories"
  put "$work/manifest" "$manifest" 0644
}

# put FILE PLACE MODE: at once and whole; programs that run keep what they have.
put() {
  unfinished=$2.new
  cp -- "$1" "$unfinished"
  chmod "$3" "$unfinished"
  mv -f -- "$unfinished" "$2"
  unfinished=
}

install_files() {
  while read -r _ file place; do
    mode=0644
    [ ! -x "$work/tree/$file" ] || mode=0755
    [ "$file" != bin/agboxd ] || mode=0750
    put "$work/tree/$file" "$place" "$mode"
  done <"$work/files"
}

# What an older version had, and this one has not.
remove_outdated() {
  [ -f "$work/old" ] || return 0
  while read -r sum place; do
    [ "$sum" != directory ] || continue
    grep -q " $place\$" "$work/files" || ! is_installed "$place" || rm -- "$place"
  done <"$work/old"
  {
    sed -n '/^directory  /p' "$work/manifest"
    while read -r sum _ place; do printf '%s  %s\n' "$sum" "$place"; done <"$work/files"
  } | LC_ALL=C sort -u >"$work/current"
  put "$work/current" "$manifest" 0644
}

reload_units() {
  if command -v systemctl >/dev/null && systemctl --user show-environment >/dev/null 2>&1; then
    systemctl --user daemon-reload
  fi
}

# agboxd needs a capability for the firewall of the sandboxes, and only root can give it. So only those may run it who
# have access to the Docker socket anyway.
offer_capability() {
  [ "$(id -u)" != 0 ] || return 0
  daemon=$prefix/bin/agboxd
  if ! chgrp docker "$daemon" 2>/dev/null; then
    printf '\nYou are not in the group docker, which may use the Docker Engine. "agbox setup" shows what is needed, and does it.\n'
    return 0
  fi
  setcap=$(PATH=/usr/sbin:/sbin:/usr/bin:/bin:$PATH command -v setcap) || setcap=setcap  # of Debian's libcap2-bin
  printf '\nOne step needs root: agboxd gets the capability to change the firewall, which isolates the sandboxes.\n\n  sudo %s cap_net_admin+ep %s\n\n' "$setcap" "$daemon"
  if [ "$yes" = no ] && command -v sudo >/dev/null && ask "Run this command now?"; then
    sudo -- "$setcap" cap_net_admin+ep "$daemon" || die "the command failed, see above; everything else is installed"
  else
    echo "Run it before you start agboxd."
  fi
}

report_path() {
  case :$PATH: in
    *:"$prefix/bin":*) ;;
    *) printf '\nPATH lacks %s. To add it, put this into the profile of your shell:\n\n  export PATH="%s:$PATH"\n' "$prefix/bin" "$prefix/bin" ;;
  esac
}

install() {
  find_tarball
  verify_tarball
  unpack
  version=$(cat "$work/tree/VERSION")
  "$work/tree/bin/agbox" --version >/dev/null ||
    die "a program of $tarball cannot be run here, see above: it needs Debian 12, Ubuntu 24.04 or another system with glibc 2.36 or later, and TMPDIR on a filesystem that is not mounted noexec; nothing was installed"
  running=$(running_daemon "$work/tree/bin/agbox" version)
  if is_up_to_date; then
    echo "agents-sandbox $version is installed in $prefix already; nothing was changed."
    return 0
  fi
  refuse_foreign_files
  missing_directories >"$work/directories"
  previous=$(installed_version)
  echo "agents-sandbox $version will be installed in $prefix${previous:+, in the place of $previous}. $tarball has the right checksum."
  echo
  printf '  %-24s %s\n' "programs" "$prefix/bin/agbox, $prefix/bin/agboxd" \
    "systemd user unit" "$units/agboxd.service, which is not started" \
    "documents and the rest" "$(wc -l <"$work/files") files in all, listed in $manifest"
  if [ -n "$running" ]; then
    printf '\nagboxd %s is running. It goes on, with its sandboxes and their commands, until you restart it, which loses none of them:\n\n' "$running"
    printf '  agbox daemon stop && agbox daemon start\n'
  fi
  printf '\nTo undo it: sh %s --uninstall%s\n\n' "$own/install.sh" "$prefix_option"
  ask "Go on?" || die "nothing was changed"
  write_manifest
  install_files
  remove_outdated
  reload_units
  echo "Installed."
  offer_capability
  report_path
  [ -n "$running" ] || printf '\nThen: agbox daemon start, and agbox doctor checks the rest.\n'
}

# --- removal ---------------------------------------------------------------------------------------

refuse_while_running() {
  [ -x "$prefix/bin/agbox" ] || return 0
  process=$(running_daemon "$prefix/bin/agbox" process)
  if [ -n "$process" ] && is_of_this_prefix "$process"; then
    die "agboxd is running (process $process). Delete the sandboxes that you do not need (agbox ps, agbox rm), then: agbox daemon stop"
  fi
}

# The link of "systemctl --user enable", if it refers to this unit.
disable_unit() {
  link=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user/default.target.wants/agboxd.service
  [ "$(readlink "$link" 2>/dev/null)" != "$units/agboxd.service" ] || rm -- "$link"
}

uninstall() {
  [ -f "$manifest" ] || die "$manifest does not exist: this script has installed nothing in $prefix"
  cp -- "$manifest" "$work/manifest"
  refuse_while_running
  echo "agents-sandbox $(installed_version) will be removed from $prefix: $(grep -vc '^directory  ' "$manifest") files, listed in $manifest."
  printf 'Sandboxes, their history and your configuration are kept, in\n  %s\n  %s\n\n' "$data/agents-sandbox" "${XDG_CONFIG_HOME:-$HOME/.config}/agents-sandbox"
  ask "Go on?" || die "nothing was changed"
  disable_unit
  while read -r sum place; do
    [ "$sum" != directory ] || continue
    [ -e "$place" ] || continue
    if is_installed "$place"; then
      rm -- "$place"
    else
      echo "Kept, because it was changed: $place" >&2
    fi
  done <"$work/manifest"
  rm -- "$manifest"
  sed -n 's/^directory  //p' "$work/manifest" | LC_ALL=C sort -r | while IFS= read -r directory; do
    [ ! -d "$directory" ] || rmdir -- "$directory" 2>/dev/null || echo "Kept, because it has other files: $directory" >&2
  done
  reload_units
  echo "Removed."
}

# --- arguments -------------------------------------------------------------------------------------

tarball='' prefix='' action=install yes=no
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) [ $# -gt 1 ] || die "--prefix needs a directory"; prefix=$2; shift ;;
    --prefix=*) prefix=${1#*=} ;;
    --uninstall) action=uninstall ;;
    --yes) yes=yes ;;
    -h | --help) usage; exit 0 ;;
    -*) die "$1: unknown option; see --help" ;;
    *) [ -z "$tarball" ] || die "$1: only one tarball can be installed"; tarball=$1 ;;
  esac
  shift
done
[ -n "${HOME:-}" ] || die "HOME is not set; set it to your home directory"
prefix_option=${prefix:+ --prefix $prefix}
prefix=${prefix:-$HOME/.local}
data=${XDG_DATA_HOME:-$HOME/.local/share}
for path in "$prefix" "$data"; do
  case $path in
    *[!A-Za-z0-9/._+@-]* | [!/]* | */) die "$path: expected an absolute path of letters, digits and ._+@-, as it is written into a systemd unit" ;;
  esac
done
# Where the socket of the daemon is, also without a login session.
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
units=$data/systemd/user
own=$prefix/libexec/agents-sandbox
manifest=$own/manifest
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
work=$(mktemp -d)
"$action"
