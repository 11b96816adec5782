// SPDX-License-Identifier: Apache-2.0
// A sandbox in words: for the tables and lines of several commands.
#pragma once

#include <agbox/v1/sandbox.pb.h>

#include <string>

namespace agbox::cli {

// "Ready"; "State 9" for one of a later daemon.
std::string state_text(v1::SandboxState state);

// a=1,b=2, sorted by key
std::string labels_text(const v1::SandboxHandle& sandbox);
// {"a":"1","b":"2"}, sorted by key
std::string labels_json(const v1::SandboxHandle& sandbox);

}  // namespace agbox::cli
