// SPDX-License-Identifier: Apache-2.0
// Shell completion scripts, generated from the command tree. Names of commands and flags consist of
// letters, digits and hyphens and need no quoting.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace agbox::cli {

std::string bash_completion(const CLI::App& root);
std::string fish_completion(const CLI::App& root);
std::string zsh_completion(const CLI::App& root);

}  // namespace agbox::cli
