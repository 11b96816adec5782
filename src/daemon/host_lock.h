// SPDX-License-Identifier: Apache-2.0
// One daemon per runtime directory. The socket and everything else may be touched only while
// holding a HostLock. The kernel releases it when the process ends; the file stays, because a
// deleted lock file could be locked twice.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/runtime_directory.h"

namespace agbox {

class HostLock {
 public:
  // Never blocks. Writes our PID into the file.
  static Result<HostLock> acquire(const RuntimeDirectory& directory, const char* file_name);

 private:
  explicit HostLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace agbox
