// SPDX-License-Identifier: Apache-2.0
// Helpers of all commands that call the daemon: connecting, reporting errors, exit codes.
#pragma once

#include <agbox/raw_client.h>

#include <optional>
#include <string>
#include <string_view>

#include "cli/console.h"

namespace agbox::cli {

// nullopt if the socket path cannot be resolved; the reason is then on stderr.
std::optional<sdk::RawClient> open_client(Console& console);

// Prints "<attempt>: <error>" and returns the exit code.
int fail_call(Console& console, std::string_view attempt, const sdk::Error& error);

// The same with a message of its own, which is whole.
int fail(Console& console, const std::string& message, const sdk::Error& error);

// Rejects a command line that parsed but is invalid; returns the exit code.
int refuse_usage(Console& console, const std::string& message);

// For calls that start something: after a timeout, it would be unknown whether it started.
inline constexpr sdk::CallOptions kNoTimeout{.timeout = std::chrono::milliseconds(0)};

}  // namespace agbox::cli
