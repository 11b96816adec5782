// SPDX-License-Identifier: Apache-2.0
// The tables of the store, drawn in schema.cpp, and the two numbers in the file's header that say
// whose file it is and which schema it has.
#pragma once

#include <cstdint>
#include <string>

#include "store/sqlite.h"

namespace agbox {

// "agbx": in the header of every store of ours, and of no other program's SQLite file.
inline constexpr std::uint32_t kStoreApplicationId = 0x61676278;
inline constexpr std::uint32_t kStoreSchemaVersion = 2;

// Makes all tables of the current schema, the two numbers and the instance's UUID, in an empty
// database.
sqlite::SqlResult<> create_schema(sqlite::Connection& connection, const std::string& instance_id);

}  // namespace agbox
