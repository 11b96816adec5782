// SPDX-License-Identifier: Apache-2.0
#include "daemon/host_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace agbox {

Result<HostLock> HostLock::acquire(const RuntimeDirectory& directory, const char* file_name) {
  const std::string path = (directory.path() / file_name).string();
  const auto refuse = [&](const std::string& why) {
    return fail(reason::kHostNotReady, "lock " + path + ": " + why);
  };
  const auto refuse_errno = [&] { return refuse(std::generic_category().message(errno)); };

  UniqueFd fd(::openat(directory.fd(), file_name,
                       O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!fd && errno == ELOOP) return refuse("it is a symbolic link; remove it");
  if (!fd) return refuse_errno();
  struct stat opened{};
  if (::fstat(fd.get(), &opened) != 0) return refuse_errno();
  if (!S_ISREG(opened.st_mode)) return refuse("it is not a regular file; remove it");

  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return refuse_errno();
    return fail(reason::kHostNotReady,
                "agboxd host lock " + path +
                    " is already held; refuse to start a second daemon on this machine");
  }
  // The file may have been replaced between open and lock; then the lock has no effect.
  struct stat named{};
  if (::fstatat(directory.fd(), file_name, &named, AT_SYMLINK_NOFOLLOW) != 0) return refuse_errno();
  if (named.st_dev != opened.st_dev || named.st_ino != opened.st_ino) {
    return refuse("it was replaced while agboxd started; restart it");
  }

  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return refuse_errno();
  }
  return HostLock(std::move(fd));
}

}  // namespace agbox
