// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "cli/command_line.h"

namespace {

// A descriptor that the caller closed would be given to the next file or socket that is opened, and
// our output would go into that. In its place comes one that every read or write fails on.
bool hold_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    const int mode = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", mode) != fd) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that left is an error of write(), with a message and an exit code.
  std::signal(SIGPIPE, SIG_IGN);
  // What goes wrong is in our own words; gRPC's log lines are for those who ask for them.
  ::setenv("GRPC_VERBOSITY", "NONE", 0);

  agbox::cli::Console console(STDOUT_FILENO, STDERR_FILENO);
  if (!hold_standard_descriptors()) {
    console.error("agbox: stdin, stdout or stderr is closed and /dev/null cannot take its place");
    return agbox::cli::kRuntimeError;
  }
  agbox::cli::CommandLine line(agbox::cli::all_commands());
  return line.run({argv + 1, argv + argc}, console);
}
