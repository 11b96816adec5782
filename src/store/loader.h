// SPDX-License-Identifier: Apache-2.0
// Reads every sandbox at start, without reading its history: the newest event is enough.
#pragma once

#include "base/result.h"
#include "store/records.h"
#include "store/sqlite.h"

namespace agbox {

// What cannot be read of one sandbox makes that sandbox broken; only a database that SQLite itself
// cannot read is an error.
sqlite::SqlResult<LoadedSandboxes> load_sandboxes(sqlite::Connection& connection);

sqlite::SqlResult<std::string> load_instance_id(sqlite::Connection& connection);

}  // namespace agbox
