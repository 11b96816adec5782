// SPDX-License-Identifier: Apache-2.0
// What every command that talks to the daemon says and returns where that fails.
#pragma once

#include <agbox/raw_client.h>

#include <optional>
#include <string>
#include <string_view>

#include "cli/console.h"

namespace agbox::cli {

// Nothing where there is no way to the daemon; stderr then says why.
std::optional<sdk::RawClient> open_client(Console& console);

// "create sandbox: the disk is full"; returns the exit code.
int fail_call(Console& console, std::string_view attempt, const sdk::Error& error);

// A command line that was understood but asks for nothing sensible; returns the exit code.
int refuse_usage(Console& console, const std::string& message);

// For calls that begin something: giving up on the answer would leave open whether it began.
inline constexpr sdk::CallOptions kNoTimeout{.timeout = std::chrono::milliseconds(0)};

}  // namespace agbox::cli
