// SPDX-License-Identifier: Apache-2.0
// An exec in words: for the tables and lines of several commands.
#pragma once

#include <agbox/v1/exec.pb.h>

#include <string>

namespace agbox::cli {

// "Running"; "State 9" for one of a later daemon.
std::string state_text(v1::ExecState state);

// Its words, joined by spaces.
std::string command_text(const v1::ExecStatus& exec);

// That not all of its output was kept, as one sentence; empty where all was.
std::string truncation_text(const v1::ExecStatus& exec);

}  // namespace agbox::cli
