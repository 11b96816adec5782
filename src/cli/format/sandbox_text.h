// SPDX-License-Identifier: Apache-2.0
// Formats fields of a sandbox, for several commands.
#pragma once

#include <agbox/v1/sandbox.pb.h>

#include <string>

namespace agbox::cli {

// "Ready"; "State 9" if this version does not know the state.
std::string state_text(v1::SandboxState state);

// a=1,b=2, sorted by key
std::string labels_text(const v1::SandboxHandle& sandbox);
// {"a":"1","b":"2"}, sorted by key
std::string labels_json(const v1::SandboxHandle& sandbox);

}  // namespace agbox::cli
