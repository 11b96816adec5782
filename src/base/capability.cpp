// SPDX-License-Identifier: Apache-2.0
#include "base/capability.h"

#ifdef __linux__
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#endif

namespace agbox {

bool has_net_admin_capability() {
#ifdef __linux__
  // Direct system call, to avoid libcap for a single bit.
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  return (data[CAP_TO_INDEX(CAP_NET_ADMIN)].effective & CAP_TO_MASK(CAP_NET_ADMIN)) != 0;
#else
  return true;
#endif
}

std::string capable_program_of_everyone() {
#ifdef __linux__
  std::error_code problem;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", problem);
  if (problem || ::getxattr(program.c_str(), "security.capability", nullptr, 0) <= 0) return {};
  // Down to the root, which is its own parent: each directory can keep others out.
  for (std::filesystem::path path = program;; path = path.parent_path()) {
    struct stat seen{};
    const bool everyone = ::stat(path.c_str(), &seen) == 0 && (seen.st_mode & S_IXOTH) != 0;
    if (!everyone) return {};
    if (path == path.parent_path()) return program.string();
  }
#else
  return {};
#endif
}

}  // namespace agbox
