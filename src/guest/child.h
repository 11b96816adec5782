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
  int out = -1;  // -1: as ours
  int err = -1;
};

// What the engine and every shell say where a program cannot be run.
inline constexpr int kNotFound = 127;
inline constexpr int kNotExecutable = 126;

struct NotStarted {
  int code;            // 126 or 127; 0 where it did not even come to a process
  std::string reason;  // one sentence
};

// Returns when the program really runs, or did not come to it.
std::expected<pid_t, NotStarted> start_child(const ChildProgram& program);

// 0 to 255, and 128 + N for signal N.
int exit_code_of(int wait_status);

// A copy of this process's environment with some of it replaced.
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>&);

}  // namespace agbox::guest
