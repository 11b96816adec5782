// SPDX-License-Identifier: Apache-2.0
// The store as a file: creates it, locks it, and checks its header before SQLite opens it. A file
// at the store's path is always complete, because it is renamed into place; a file of another
// program stays untouched, with nothing new next to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "store/ballast.h"

namespace agbox {

// Checks that this is the header of one of our stores, with a schema up to `newest_schema`. The
// header of a SQLite file is its first 100 bytes.
Result<> check_store_header(std::span<const unsigned char> header,
                            const std::filesystem::path& path, std::uint32_t newest_schema);

// Of a store that a newer daemon has migrated; it names the backup of before the first migration
// that this one does not know.
Error newer_schema(const std::filesystem::path& path, std::int64_t schema,
                   std::uint32_t newest_schema);

// Holds the lock on the store.
class StoreFile {
 public:
  // Opens the file, or creates it together with its ballast. `vfs`: see sqlite::Connection::open().
  static Result<StoreFile> open(const std::filesystem::path& path, std::uint32_t newest_schema,
                                Ballast& ballast, const std::string& vfs);

  int fd() const { return fd_.get(); }

 private:
  explicit StoreFile(UniqueFd fd) : fd_(std::move(fd)) {}

  static Result<std::optional<StoreFile>> open_existing(const std::filesystem::path& path,
                                                        std::uint32_t newest_schema);
  static Result<std::optional<StoreFile>> create(const std::filesystem::path& path,
                                                 Ballast& ballast, const std::string& vfs);

  UniqueFd fd_;
};

}  // namespace agbox
