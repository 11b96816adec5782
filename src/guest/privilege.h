// SPDX-License-Identifier: Apache-2.0
// What this process may do and who may look into it.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "guest/account_files.h"

namespace agbox::guest {

// Closes memory, environment and descriptors to everybody inside, container root included. The
// kernel opens them again at every change of ids: call it after each.
void stay_private();

// Keeps KILL, SETUID and SETGID as this process's own. The bounding set stays whole, so that what
// it starts as root has what the container grants, and sudo works.
Result<> drop_capabilities();

// Turns a child for good into somebody else: 0, or the errno of the step that was refused.
int become(const Identity& identity);

// Looks at files as somebody else while it lives: without DAC_OVERRIDE not even root may enter a
// user's 0700 folder.
class FileAccessAs {
 public:
  FileAccessAs(uid_t uid, gid_t gid);
  ~FileAccessAs();
  FileAccessAs(const FileAccessAs&) = delete;
  FileAccessAs& operator=(const FileAccessAs&) = delete;
};

}  // namespace agbox::guest
