// SPDX-License-Identifier: Apache-2.0
#include "store/wal_reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <optional>

#include "base/unique_fd.h"

namespace agbox {
namespace {

constexpr std::uint64_t kFewPages = std::uint64_t{256} << 10;  // more than one commit needs

std::optional<std::uint64_t> free_bytes(const std::filesystem::path& directory) {
  struct statvfs disk{};
  if (::statvfs(directory.c_str(), &disk) != 0) return std::nullopt;
  return std::uint64_t{disk.f_bavail} * disk.f_frsize;
}

}  // namespace

void WalReserve::hold() {
  is_held_ = false;
#ifdef __linux__
  // SQLite holds POSIX locks on the database, never on its log, so closing this is safe.
  const UniqueFd fd(::open(log_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat found{};
  if (!fd || ::fstat(fd.get(), &found) != 0) return;
  const bool has_blocks = static_cast<std::uint64_t>(found.st_blocks) * 512 >= bytes_;
  is_held_ = has_blocks ||
             (free_bytes(log_.parent_path()).value_or(0) / 2 >= bytes_ &&
              ::fallocate(fd.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes_)) == 0);
#endif
}

bool WalReserve::is_last_space() const {
  return is_held_ && free_bytes(log_.parent_path()).value_or(kFewPages) < kFewPages;
}

}  // namespace agbox
