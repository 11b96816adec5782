// SPDX-License-Identifier: Apache-2.0
// Resumes a sandbox that the daemon stopped because it was idle, for commands that need it to run.
#pragma once

#include <agbox/raw_client.h>

#include "cli/console.h"
#include "cli/interrupt.h"

namespace agbox::cli {

// True if `sandbox` was not stopped for being idle, or is ready again. Otherwise the reason is on
// stderr. One that a client stopped stays stopped: that was on purpose.
bool resume_if_idle(Console& console, const sdk::RawClient& client,
                    const v1::SandboxHandle& sandbox, const Interrupt& interrupt);

}  // namespace agbox::cli
