// SPDX-License-Identifier: Apache-2.0
#include "store/ballast.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/failpoint.h"
#include "base/unique_fd.h"

namespace agbox {
namespace {

// For file systems without fallocate. Not zeros, which some file systems compress away.
int write_noise(int fd, std::uint64_t bytes) {
  std::array<char, 1 << 16> block{};
  std::uint64_t noise = 0x9E3779B97F4A7C15;
  for (char& byte : block) {
    noise = noise * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<char>(noise >> 56);
  }
  for (std::uint64_t offset = 0; offset < bytes;) {
    const std::size_t length = std::min<std::uint64_t>(block.size(), bytes - offset);
    const ssize_t written = ::pwrite(fd, block.data(), length, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    offset += static_cast<std::uint64_t>(written);
  }
  return 0;
}

int allocate(int fd, std::uint64_t bytes) {
#ifdef __linux__
  while (::fallocate(fd, 0, 0, static_cast<off_t>(bytes)) != 0) {
    if (errno == EINTR) continue;
    if (errno == EOPNOTSUPP) return write_noise(fd, bytes);
    return errno;
  }
  return 0;
#else
  return write_noise(fd, bytes);
#endif
}

}  // namespace

bool Ballast::is_whole() const {
  struct stat found{};
  return ::lstat(path_.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
         static_cast<std::uint64_t>(found.st_blocks) * 512 >= bytes_;
}

Result<> Ballast::make() {
  if (is_whole()) return {};
  AGBOX_FAILPOINT("store.ballast.before_make");
  int problem = 0;
  {
    const UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    problem = fd ? allocate(fd.get(), bytes_) : errno;
  }
  AGBOX_FAILPOINT("store.ballast.after_make");
  if (problem == 0) return {};
  ::unlink(path_.c_str());
  const Error error =
      errno_error("reserve " + std::to_string(bytes_) + " bytes in " + path_.string(), problem);
  if (problem != ENOSPC && problem != EDQUOT) return std::unexpected(error);
  return fail(reason::kResourceExhausted, error.message() + "; free some space");
}

Result<> Ballast::make_with_margin() {
  struct statvfs disk{};
  if (::statvfs(path_.parent_path().c_str(), &disk) != 0) {
    return std::unexpected(
        errno_error("check free space in " + path_.parent_path().string(), errno));
  }
  if (disk.f_bavail * disk.f_frsize < 2 * bytes_) {
    return fail(reason::kResourceExhausted, "not enough free space for " + path_.string());
  }
  return make();
}

bool Ballast::release() {
  AGBOX_FAILPOINT("store.ballast.before_release");
  const bool existed = ::unlink(path_.c_str()) == 0;
  AGBOX_FAILPOINT("store.ballast.after_release");
  return existed;
}

}  // namespace agbox
