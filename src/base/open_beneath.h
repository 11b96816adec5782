// SPDX-License-Identifier: Apache-2.0
// Opens files below a directory whose contents are untrusted.
#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/unique_fd.h"

namespace agbox {

// No symbolic link is followed.
inline constexpr std::uint64_t kBeneath =
    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

// Nor another filesystem entered.
inline constexpr std::uint64_t kInTree = kBeneath | RESOLVE_NO_XDEV;

// `resolve` is that of openat2(). Sets errno on failure.
inline UniqueFd open_beneath(int directory, const char* path, int flags,
                             std::uint64_t resolve = kBeneath) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(static_cast<unsigned>(flags | O_CLOEXEC));
  how.resolve = resolve;
  while (true) {
    const long fd = ::syscall(SYS_openat2, directory, path, &how, sizeof how);
    if (fd >= 0 || errno != EINTR) return UniqueFd(static_cast<int>(fd));
  }
}

}  // namespace agbox
