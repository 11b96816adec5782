// SPDX-License-Identifier: Apache-2.0
// The manual of all commands, from the table that --help is generated from.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace agbox::cli {

// agbox(1), for man.
std::string man_page(const CLI::App& root);

}  // namespace agbox::cli
