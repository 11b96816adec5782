// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "cli/command_line.h"

namespace {

// If the caller closed a standard descriptor, the next file or socket opened would reuse its number
// and receive our output. Fill the gap with a descriptor on which every read or write fails.
bool reserve_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    const int mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", mode) != fd) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  // A closed pipe must be an error of write(), with a message and an exit code.
  std::signal(SIGPIPE, SIG_IGN);
  // We print our own error messages; gRPC's log lines are opt-in.
  ::setenv("GRPC_VERBOSITY", "NONE", 0);
  // Not epoll: its watches are counted per user, and sandboxes of this user may have used them up.
  ::setenv("GRPC_POLL_STRATEGY", "poll", 0);

  agbox::cli::Console console(STDOUT_FILENO, STDERR_FILENO);
  if (!reserve_standard_descriptors()) {
    console.error("agbox: stdin, stdout or stderr is closed: cannot open /dev/null in its place");
    return agbox::cli::kRuntimeError;
  }
  agbox::cli::CommandLine line(agbox::cli::all_commands());
  return line.run({argv + 1, argv + argc}, console);
}
