// SPDX-License-Identifier: Apache-2.0
// Loads every sandbox at start, without its history: the newest event is enough.
#pragma once

#include "base/result.h"
#include "store/records.h"
#include "store/sqlite.h"

namespace agbox {

// A sandbox that cannot be decoded is reported as broken; only a database that SQLite cannot read
// is an error.
sqlite::SqlResult<LoadedSandboxes> load_sandboxes(sqlite::Connection& connection);

sqlite::SqlResult<std::string> load_instance_id(sqlite::Connection& connection);

}  // namespace agbox
