// SPDX-License-Identifier: Apache-2.0
// Starts and stops the daemon of this user: as the service of the user's systemd if it is installed
// there, else as a process of its own, which logs to a file.
#pragma once

#include <filesystem>
#include <optional>

#include "cli/console.h"
#include "cli/program.h"

namespace agbox::cli {

// Whether the user's systemd has the service agboxd.
bool has_daemon_service();

// The log of a daemon that is no service; empty if the environment does not determine it.
std::filesystem::path daemon_log();

// Waits until the daemon is reachable. Otherwise returns false, and the reason is on stderr.
bool start_daemon(Console& console);

// Waits until it has ended. Sandboxes and their commands go on.
bool stop_daemon(Console& console);

// For commands that need a daemon: starts one that can be started without asking anyone, and
// reports that. False if there is none; nothing is printed then.
bool start_daemon_on_first_use(Console& console);

}  // namespace agbox::cli
