// SPDX-License-Identifier: Apache-2.0
// Starts a program as another user, and interprets its exit status.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "guest/account_files.h"

namespace agbox::guest {

struct ChildProgram {
  std::vector<std::string> arguments;    // the first is looked up in PATH
  std::vector<std::string> environment;  // NAME=value
  std::string working_directory = "/";
  Identity identity;
  int in = -1;  // -1: inherited
  int out = -1;
  int err = -1;
  // `in` is a terminal, which becomes the controlling one of its session.
  bool has_terminal = false;
};

// The exit codes of shells and engines for a program that cannot be run.
inline constexpr int kNotFound = 127;
inline constexpr int kNotExecutable = 126;

struct NotStarted {
  int code;            // 126 or 127; 0 if no process could be created
  std::string reason;  // one sentence
};

// Returns once the program runs or failed to start. It is looked up in the PATH of its own
// environment, run by /bin/sh if it is a script without "#!", and starts in its own session with
// default signal handlers. All our descriptors but the three are close-on-exec.
std::expected<pid_t, NotStarted> start_child(const ChildProgram& program);

// 0 to 255, or 128 + N for signal N.
int exit_code_of(int wait_status);

// This process's environment with `added` (NAME=value) applied; the last of a name wins.
std::vector<std::string> environment_with(const std::vector<std::string>& added);

}  // namespace agbox::guest
