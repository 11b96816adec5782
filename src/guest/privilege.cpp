// SPDX-License-Identifier: Apache-2.0
#include "guest/privilege.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/check.h"

namespace agbox::guest {

void make_undumpable() {
  AGBOX_CHECK(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "prctl(PR_SET_DUMPABLE)");
}

Result<> drop_capabilities() {
  constexpr std::uint32_t kKept = (1U << CAP_KILL) | (1U << CAP_SETUID) | (1U << CAP_SETGID);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  // Only granted capabilities can be kept: with an engine that withholds one of the three,
  // everything that does not need it still works.
  if (::syscall(SYS_capget, &header, sets.data()) != 0) {
    return std::unexpected(errno_error("reading the guest's capabilities", errno));
  }
  sets[0] = {.effective = sets[0].permitted & kKept,
             .permitted = sets[0].permitted & kKept,
             .inheritable = 0};
  sets[1] = {};
  if (::syscall(SYS_capset, &header, sets.data()) != 0) {
    return std::unexpected(errno_error("dropping the guest's capabilities", errno));
  }
  make_undumpable();
  return {};
}

int switch_user(const Identity& identity) {
  // Groups first, while permitted; the uid last.
  if (::setgroups(identity.gids.size(), identity.gids.data()) != 0) return errno;
  if (::setresgid(identity.gid, identity.gid, identity.gid) != 0) return errno;
  if (::setresuid(identity.uid, identity.uid, identity.uid) != 0) return errno;
  make_undumpable();
  return 0;
}

FileAccessAs::FileAccessAs(uid_t uid, gid_t gid) {
  ::setfsgid(gid);
  ::setfsuid(uid);
  make_undumpable();
}

FileAccessAs::~FileAccessAs() {
  ::setfsuid(::geteuid());
  ::setfsgid(::getegid());
  make_undumpable();
}

}  // namespace agbox::guest
