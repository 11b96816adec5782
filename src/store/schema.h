// SPDX-License-Identifier: Apache-2.0
// The tables of the store, drawn in schema.cpp, and the two numbers in the file header that
// identify the application and the schema version.
#pragma once

#include <cstdint>
#include <string>

#include "store/sqlite.h"

namespace agbox {

// "agbx": identifies our stores among SQLite files.
inline constexpr std::uint32_t kStoreApplicationId = 0x61676278;
inline constexpr std::uint32_t kStoreSchemaVersion = 3;

// The newest position that an event has, or had before it was purged; 0 before the first.
inline constexpr const char* kNewestPosition =
    "SELECT max((SELECT coalesce(max(position), 0) FROM event),"
    " (SELECT purged_through FROM instance))";

// Creates the current schema, both header numbers and the instance's UUID in an empty database.
sqlite::SqlResult<> create_schema(sqlite::Connection& connection, const std::string& instance_id);

}  // namespace agbox
