// SPDX-License-Identifier: Apache-2.0
// One daemon per runtime folder. Whoever has a HostLock is that daemon: the socket and everything
// else may only be touched with one in hand. The kernel releases it when the process ends, however
// it ends; the file stays, because a deleted lock file could be locked by two at once.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/runtime_folder.h"

namespace agbox {

class HostLock {
 public:
  // Never waits. Writes our process id into the file.
  static Result<HostLock> acquire(const RuntimeFolder& folder, const char* file_name);

 private:
  explicit HostLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace agbox
