// SPDX-License-Identifier: Apache-2.0
// Formats fields of a sandbox, for several commands.
#pragma once

#include <agbox/v1/sandbox.pb.h>

#include <string>

namespace agbox::cli {

// "Ready"; "State 9" if this version does not know the state.
std::string state_text(v1::SandboxState state);

// "SANDBOX_CREATE_FAILED: no such image"; either may be empty.
std::string error_text(const std::string& code, const std::string& message);

// "db (required service, postgres:15): Ready, healthy". Values of its environment are not in it:
// they may be secrets.
std::string companion_text(const v1::CompanionStatus& companion);

// a=1,b=2, sorted by key
std::string labels_text(const v1::SandboxHandle& sandbox);
// {"a":"1","b":"2"}, sorted by key
std::string labels_json(const v1::SandboxHandle& sandbox);

}  // namespace agbox::cli
