// SPDX-License-Identifier: Apache-2.0
// Records the workspace of a sandbox as it is now.
#pragma once

#include <agbox/raw_client.h>

#include <stop_token>

#include "cli/workspace/record.h"

namespace agbox::cli {

// What went in; before the agent starts.
sdk::Result<void> capture_base(const sdk::RawClient& client, const WorkspaceRecord& record,
                               const std::stop_token& stop);
// What it is now. Files that the agent added and a .gitignore names are left out.
sdk::Result<void> capture_now(const sdk::RawClient& client, const WorkspaceRecord& record,
                              const std::stop_token& stop);

}  // namespace agbox::cli
