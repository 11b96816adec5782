// SPDX-License-Identifier: Apache-2.0
// The store as a file: makes it, locks it, and looks at its header before SQLite may touch it. A
// file at the store's path is always whole, because it gets that name last; a file that is not ours
// stays as it is, byte by byte, with nothing new beside it.
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

// Is this the beginning of a store of ours, with a schema up to `newest_schema`? The header of a
// SQLite file is its first 100 bytes.
Result<> check_store_header(std::span<const unsigned char> header,
                            const std::filesystem::path& path, std::uint32_t newest_schema);

// Holds the lock on the store for as long as it lives.
class StoreFile {
 public:
  // Opens the file, or makes it together with its ballast. `vfs` is SQLite's, empty for the
  // system's own.
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
