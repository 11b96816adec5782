// SPDX-License-Identifier: Apache-2.0
// Migrates an older store to the current schema, one version at a time. Before each step a durable
// copy of the file is kept as <store>.before-<version>; a step is one transaction, so a kill leaves
// either the old schema or the new one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "store/sqlite.h"

namespace agbox {

struct Migration {
  std::uint32_t to_version = 0;  // from the version before
  std::string sql;
};

// The steps to `version`, in order.
struct MigrationPlan {
  std::uint32_t version = 0;
  std::vector<Migration> steps;
};

MigrationPlan current_migrations();

// `connection` must be the only one on the file. The copy is read through `fd`, the descriptor that
// holds the lock: closing another one would drop SQLite's locks.
Result<> migrate(sqlite::Connection& connection, int fd, const std::filesystem::path& path,
                 const MigrationPlan& plan, const Logger& log);

}  // namespace agbox
