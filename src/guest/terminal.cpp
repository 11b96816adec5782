// SPDX-License-Identifier: Apache-2.0
#include "guest/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "guest/privilege.h"

namespace agbox::guest {
namespace {

// The first is a part of the container's devpts and cannot be replaced by root inside.
constexpr const char* kMultiplexers[] = {"/dev/pts/ptmx", "/dev/ptmx"};

// The user owns the device of a terminal that it opens.
UniqueFd open_master(const Identity& user) {
  const FileAccessAs as_user(user.uid, user.gid);
  for (const char* path : kMultiplexers) {
    UniqueFd master(::open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
    if (master) return master;
  }
  return {};
}

}  // namespace

Result<Terminal> open_terminal(const Identity& user, TerminalSize size) {
  UniqueFd master = open_master(user);
  int locked = 0;
  if (!master || ::ioctl(master.get(), TIOCSPTLCK, &locked) != 0) {
    return std::unexpected(errno_error("cannot open a terminal", errno));
  }
  // Not by its path, which root inside may have replaced.
  UniqueFd slave(::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!slave) return std::unexpected(errno_error("cannot open a terminal", errno));
  resize(master.get(), size);
  return Terminal{.master = std::move(master), .slave = std::move(slave)};
}

void resize(int master, TerminalSize size) {
  winsize wanted{};
  wanted.ws_row = size.rows;
  wanted.ws_col = size.columns;
  // Fails only for a descriptor that is no terminal.
  static_cast<void>(::ioctl(master, TIOCSWINSZ, &wanted));
}

pid_t foreground_group(int master) {
  pid_t group = 0;
  return ::ioctl(master, TIOCGPGRP, &group) == 0 && group > 1 ? group : 0;
}

}  // namespace agbox::guest
