// SPDX-License-Identifier: Apache-2.0
// Runs other programs: those that manage the daemon, and the daemon itself.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace agbox::cli {

using Words = std::vector<std::string>;

// With the stdin, stdout and stderr of agbox. The exit code, as a shell has it.
int run_program(const Words& words);
// Without any output.
bool program_succeeds(const Words& words);

struct BackgroundProgram {
  int process = 0;
  UniqueFd ended;  // readable once it has ended
};
// In a session of its own, which outlives agbox and its terminal, and in "/"; its output is in
// `log`, a new file. The error is an errno.
std::expected<BackgroundProgram, int> run_in_background(const std::filesystem::path& program,
                                                        const std::filesystem::path& log);

}  // namespace agbox::cli
