// SPDX-License-Identifier: Apache-2.0
// A pseudoterminal of this container.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"
#include "guest/account_files.h"

namespace agbox::guest {

struct TerminalSize {
  std::uint16_t rows = 0;
  std::uint16_t columns = 0;
};

struct Terminal {
  UniqueFd master;  // non-blocking
  UniqueFd slave;   // what the command gets; its device belongs to the user
};

Result<Terminal> open_terminal(const Identity& user, TerminalSize size);

// The processes in the foreground are notified with SIGWINCH.
void resize(int master, TerminalSize size);

// The process group in the foreground; 0 if there is none.
pid_t foreground_group(int master);

}  // namespace agbox::guest
