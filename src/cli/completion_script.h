// SPDX-License-Identifier: Apache-2.0
// Completion scripts written from the command tree itself, so that they offer what exists and
// nothing else. Names of commands and flags are ours (letters, digits, hyphens) and need no
// quoting.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace agbox::cli {

std::string bash_completion(const CLI::App& root);
std::string fish_completion(const CLI::App& root);
std::string zsh_completion(const CLI::App& root);

}  // namespace agbox::cli
