// SPDX-License-Identifier: Apache-2.0
// The guest program that goes into containers. Each version is copied once into its own directory
// and mounted from there: neither an upgrade nor a removed build directory breaks an existing
// container.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace agbox::guestlink {

struct GuestProgram {
  std::filesystem::path path;  // <state_root>/guests/<sha256>/agbox-guest
  std::string sha256;          // in hex
};

// ../libexec/agents-sandbox/agbox-guest relative to the daemon's directory, or agbox-guest in it.
Result<std::filesystem::path> find_guest_program(const std::filesystem::path& daemon_program);

// The copy; created atomically unless a complete one exists.
Result<GuestProgram> install_guest_program(const std::filesystem::path& source,
                                           const std::filesystem::path& state_root);

}  // namespace agbox::guestlink
