// SPDX-License-Identifier: Apache-2.0
// The system's SQLite VFS, but the log cannot be written while the disk is marked as full. One per
// process.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <string>

namespace agbox::full_disk {

inline std::atomic<bool> is_full = false;
inline const sqlite3_io_methods* real_methods = nullptr;
inline sqlite3_io_methods methods;
inline sqlite3_vfs vfs;

inline int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
  return is_full ? SQLITE_FULL : real_methods->xWrite(file, bytes, size, offset);
}

inline int open(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* out) {
  sqlite3_vfs* system = sqlite3_vfs_find("unix");
  const int code = system->xOpen(system, name, file, flags, out);
  if (code != SQLITE_OK || (flags & SQLITE_OPEN_WAL) == 0) return code;
  if (real_methods == nullptr) {
    real_methods = file->pMethods;
    methods = *real_methods;
    methods.xWrite = write;
  }
  file->pMethods = &methods;
  return SQLITE_OK;
}

// Its name, for StoreTestOptions::vfs.
inline std::string install() {
  if (sqlite3_vfs_find("full-disk") == nullptr) {
    vfs = *sqlite3_vfs_find("unix");
    vfs.zName = "full-disk";
    vfs.xOpen = open;
    vfs.pNext = nullptr;
    sqlite3_vfs_register(&vfs, 0);
  }
  return "full-disk";
}

}  // namespace agbox::full_disk
