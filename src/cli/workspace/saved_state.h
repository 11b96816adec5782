// SPDX-License-Identifier: Apache-2.0
// Brings what is saved of a session's workspace up to date, while its sandbox still exists.
#pragma once

#include <optional>

#include "cli/console.h"
#include "cli/interrupt.h"
#include "cli/workspace/record.h"

namespace agbox::cli {

// An exit code if there is nothing to show; the reason is then on stderr. The caller has locked the
// record.
std::optional<int> update_saved_tree(Console& console, const WorkspaceRecord& record,
                                     const Interrupt& interrupt);

}  // namespace agbox::cli
