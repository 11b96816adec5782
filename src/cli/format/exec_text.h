// SPDX-License-Identifier: Apache-2.0
// Formats fields of an exec, for several commands.
#pragma once

#include <agbox/v1/exec.pb.h>

#include <string>

namespace agbox::cli {

// "Running"; "State 9" if this version does not know the state.
std::string state_text(v1::ExecState state);

// The arguments, joined by spaces.
std::string command_text(const v1::ExecStatus& exec);

// A warning if part of the output was dropped, else empty.
std::string truncation_text(const v1::ExecStatus& exec);

}  // namespace agbox::cli
