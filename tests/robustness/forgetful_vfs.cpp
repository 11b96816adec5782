// SPDX-License-Identifier: Apache-2.0
#include "robustness/forgetful_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "base/check.h"

namespace agbox {
namespace {

// One file's content in this process; shared by its connections. After the first write the whole
// content is held here and written to the real file only by a sync, or when the last connection
// closes.
struct Content {
  std::mutex mutex;
  bool is_ahead = false;  // of the real file
  std::vector<char> bytes;
};

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Content>> contents;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

// SQLite allocates szOsFile bytes; ours come first and the real file's follow.
struct ForgetfulFile {
  sqlite3_file base;
  std::shared_ptr<Content>* content;  // null: a temporary file, passed through
  sqlite3_file* real() {
    return reinterpret_cast<sqlite3_file*>(this + 1);  // the layout that SQLite's shims use
  }
};

ForgetfulFile& ours(sqlite3_file* file) {
  return *reinterpret_cast<ForgetfulFile*>(file);
}
sqlite3_vfs* system_vfs() {
  static sqlite3_vfs* const vfs = sqlite3_vfs_find("unix");
  return vfs;
}

// SQLite's own VFS never gets more than a page at once, and writes nothing for a multiple of 128
// KiB.
constexpr std::size_t kPiece = 1 << 16;

template <class Transfer>
int in_pieces(std::vector<char>& bytes, Transfer transfer) {
  for (std::size_t offset = 0; offset < bytes.size(); offset += kPiece) {
    const std::size_t length = std::min(kPiece, bytes.size() - offset);
    const int code = transfer(bytes.data() + offset, static_cast<int>(length),
                              static_cast<sqlite3_int64>(offset));
    if (code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

int take_over(ForgetfulFile& file, Content& content) {
  if (content.is_ahead) return SQLITE_OK;
  sqlite3_file* real = file.real();
  sqlite3_int64 size = 0;
  if (const int code = real->pMethods->xFileSize(real, &size); code != SQLITE_OK) return code;
  content.bytes.resize(static_cast<std::size_t>(size));
  content.is_ahead = true;
  return in_pieces(content.bytes, [&](char* bytes, int length, sqlite3_int64 offset) {
    return real->pMethods->xRead(real, bytes, length, offset);
  });
}

int bring_down(ForgetfulFile& file, Content& content) {
  if (!content.is_ahead) return SQLITE_OK;
  sqlite3_file* real = file.real();
  int code = real->pMethods->xTruncate(real, static_cast<sqlite3_int64>(content.bytes.size()));
  if (code != SQLITE_OK) return code;
  code = in_pieces(content.bytes, [&](char* bytes, int length, sqlite3_int64 offset) {
    return real->pMethods->xWrite(real, bytes, length, offset);
  });
  if (code != SQLITE_OK) return code;
  content.is_ahead = false;
  content.bytes.clear();
  return SQLITE_OK;
}

int close_file(sqlite3_file* file) {
  ForgetfulFile& mine = ours(file);
  if (mine.content != nullptr) {
    if (mine.content->use_count() == 1) bring_down(mine, **mine.content);
    delete mine.content;
  }
  return mine.real()->pMethods->xClose(mine.real());
}

int read_file(sqlite3_file* file, void* to, int amount, sqlite3_int64 offset) {
  ForgetfulFile& mine = ours(file);
  if (mine.content == nullptr) return mine.real()->pMethods->xRead(mine.real(), to, amount, offset);
  Content& content = **mine.content;
  const std::scoped_lock lock(content.mutex);
  if (!content.is_ahead) return mine.real()->pMethods->xRead(mine.real(), to, amount, offset);
  const auto size = static_cast<sqlite3_int64>(content.bytes.size());
  const auto there = static_cast<std::size_t>(std::clamp<sqlite3_int64>(size - offset, 0, amount));
  if (there > 0) std::memcpy(to, content.bytes.data() + offset, there);
  if (there == static_cast<std::size_t>(amount)) return SQLITE_OK;
  std::memset(static_cast<char*>(to) + there, 0, static_cast<std::size_t>(amount) - there);
  return SQLITE_IOERR_SHORT_READ;
}

int write_file(sqlite3_file* file, const void* from, int amount, sqlite3_int64 offset) {
  ForgetfulFile& mine = ours(file);
  if (mine.content == nullptr)
    return mine.real()->pMethods->xWrite(mine.real(), from, amount, offset);
  Content& content = **mine.content;
  const std::scoped_lock lock(content.mutex);
  if (const int code = take_over(mine, content); code != SQLITE_OK) return code;
  const auto end = static_cast<std::size_t>(offset + amount);
  if (content.bytes.size() < end) content.bytes.resize(end);
  std::memcpy(content.bytes.data() + offset, from, static_cast<std::size_t>(amount));
  return SQLITE_OK;
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  ForgetfulFile& mine = ours(file);
  if (mine.content == nullptr) return mine.real()->pMethods->xTruncate(mine.real(), size);
  Content& content = **mine.content;
  const std::scoped_lock lock(content.mutex);
  if (const int code = take_over(mine, content); code != SQLITE_OK) return code;
  content.bytes.resize(static_cast<std::size_t>(size));
  return SQLITE_OK;
}

int sync_file(sqlite3_file* file, int flags) {
  ForgetfulFile& mine = ours(file);
  if (mine.content != nullptr) {
    Content& content = **mine.content;
    const std::scoped_lock lock(content.mutex);
    if (const int code = bring_down(mine, content); code != SQLITE_OK) return code;
  }
  return mine.real()->pMethods->xSync(mine.real(), flags);
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  ForgetfulFile& mine = ours(file);
  if (mine.content != nullptr) {
    Content& content = **mine.content;
    const std::scoped_lock lock(content.mutex);
    if (content.is_ahead) {
      *size = static_cast<sqlite3_int64>(content.bytes.size());
      return SQLITE_OK;
    }
  }
  return mine.real()->pMethods->xFileSize(mine.real(), size);
}

int lock_file(sqlite3_file* file, int level) {
  return ours(file).real()->pMethods->xLock(ours(file).real(), level);
}
int unlock_file(sqlite3_file* file, int level) {
  return ours(file).real()->pMethods->xUnlock(ours(file).real(), level);
}
int check_reserved_lock(sqlite3_file* file, int* result) {
  return ours(file).real()->pMethods->xCheckReservedLock(ours(file).real(), result);
}
int file_control(sqlite3_file* file, int operation, void* argument) {
  // Size hints and the like would reach the real file before a sync does.
  if (operation == SQLITE_FCNTL_SIZE_HINT || operation == SQLITE_FCNTL_CHUNK_SIZE) return SQLITE_OK;
  return ours(file).real()->pMethods->xFileControl(ours(file).real(), operation, argument);
}
int sector_size(sqlite3_file* file) {
  return ours(file).real()->pMethods->xSectorSize(ours(file).real());
}
int device_characteristics(sqlite3_file* file) {
  return ours(file).real()->pMethods->xDeviceCharacteristics(ours(file).real());
}
// The log's index is rebuilt at the first open after a kill, so it is passed through.
int shm_map(sqlite3_file* file, int region, int size, int extend, void volatile** to) {
  return ours(file).real()->pMethods->xShmMap(ours(file).real(), region, size, extend, to);
}
int shm_lock(sqlite3_file* file, int offset, int count, int flags) {
  return ours(file).real()->pMethods->xShmLock(ours(file).real(), offset, count, flags);
}
void shm_barrier(sqlite3_file* file) {
  ours(file).real()->pMethods->xShmBarrier(ours(file).real());
}
int shm_unmap(sqlite3_file* file, int remove) {
  return ours(file).real()->pMethods->xShmUnmap(ours(file).real(), remove);
}

constexpr sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = file_size,
    .xLock = lock_file,
    .xUnlock = unlock_file,
    .xCheckReservedLock = check_reserved_lock,
    .xFileControl = file_control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = device_characteristics,
    .xShmMap = shm_map,
    .xShmLock = shm_lock,
    .xShmBarrier = shm_barrier,
    .xShmUnmap = shm_unmap,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

std::shared_ptr<Content> content_of(const std::string& path) {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  std::shared_ptr<Content> content = all.contents[path].lock();
  if (content == nullptr) all.contents[path] = content = std::make_shared<Content>();
  return content;
}

int open_file(sqlite3_vfs*, sqlite3_filename name, sqlite3_file* file, int flags, int* out_flags) {
  ForgetfulFile& mine = *new (file) ForgetfulFile{};
  const int code = system_vfs()->xOpen(system_vfs(), name, mine.real(), flags, out_flags);
  if (code != SQLITE_OK) return code;
  mine.base.pMethods = &kMethods;
  if (name != nullptr) mine.content = new std::shared_ptr<Content>(content_of(name));
  return SQLITE_OK;
}

}  // namespace

void register_forgetful_vfs() {
  static sqlite3_vfs vfs = *system_vfs();
  vfs.zName = kForgetfulVfs;
  vfs.szOsFile = static_cast<int>(sizeof(ForgetfulFile)) + system_vfs()->szOsFile;
  vfs.xOpen = open_file;
  vfs.pNext = nullptr;
  AGBOX_CHECK(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK, "register the forgetful VFS");
}

}  // namespace agbox
