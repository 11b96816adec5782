// SPDX-License-Identifier: Apache-2.0
// The guest program that goes into containers. Each version is copied once into a folder of its
// own and mounted from there: an upgrade or a removed build folder never breaks a container that
// exists.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace agbox::guestlink {

struct GuestProgram {
  std::filesystem::path path;  // <state_root>/guests/<sha256>/agbox-guest
  std::string sha256;          // in hex
};

// ../libexec/agents-sandbox/agbox-guest beside the daemon's program, or agbox-guest next to it.
Result<std::filesystem::path> find_guest_program(const std::filesystem::path& daemon_program);

// The copy, made in one step where it is not there whole.
Result<GuestProgram> install_guest_program(const std::filesystem::path& source,
                                           const std::filesystem::path& state_root);

}  // namespace agbox::guestlink
