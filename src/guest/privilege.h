// SPDX-License-Identifier: Apache-2.0
// Privileges of this process and access to it by others.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "guest/account_files.h"

namespace agbox::guest {

// Hides memory, environment and descriptors from all processes inside, including root. The kernel
// resets it at every change of IDs: call it after each.
void make_undumpable();

// Keeps only KILL, SETUID and SETGID. The bounding set stays complete, so that what it starts as
// root has what the container grants, and sudo works.
Result<> drop_capabilities();

// Switches a child permanently to another user; returns 0, or the errno of the failed step.
int switch_user(const Identity& identity);

// Accesses files as another user during its lifetime: without DAC_OVERRIDE not even root may enter
// a user's 0700 directory.
class FileAccessAs {
 public:
  FileAccessAs(uid_t uid, gid_t gid);
  ~FileAccessAs();
  FileAccessAs(const FileAccessAs&) = delete;
  FileAccessAs& operator=(const FileAccessAs&) = delete;
};

}  // namespace agbox::guest
