// SPDX-License-Identifier: Apache-2.0
// Starting a program as somebody else, and what its end means.
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
  int in = -1;  // -1: as ours
  int out = -1;
  int err = -1;
};

// What the engine and every shell say where a program cannot be run.
inline constexpr int kNotFound = 127;
inline constexpr int kNotExecutable = 126;

struct NotStarted {
  int code;            // 126 or 127; 0 where it did not even come to a process
  std::string reason;  // one sentence
};

// Returns when the program really runs, or did not come to it. It is found in the PATH of its own
// environment, and begins with a session of its own and signals as they are by default. Every
// descriptor of ours but the three is closed on exec where it was opened.
std::expected<pid_t, NotStarted> start_child(const ChildProgram& program);

// 0 to 255, and 128 + N for signal N.
int exit_code_of(int wait_status);

// This process's environment with `added` (NAME=value) on top. The last of a name counts.
std::vector<std::string> environment_with(const std::vector<std::string>& added);

}  // namespace agbox::guest
