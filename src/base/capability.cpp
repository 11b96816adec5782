// SPDX-License-Identifier: Apache-2.0
#include "base/capability.h"

#ifdef __linux__
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>
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

}  // namespace agbox
