// SPDX-License-Identifier: Apache-2.0
// The way to a socket of the daemon's user, which other users of this host, and sandboxes, must not
// be able to choose.
//
// Every call may wait for a disk.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "ingress/file_identity.h"

namespace agbox {

inline constexpr int kMaxSocketLinks = 8;

struct SocketWay {
  uid_t user = 0;  // of the daemon
  // Links below them are not followed: what is there belongs to the user, and may still be the work
  // of a sandbox.
  std::vector<FileIdentity> sandbox_directories{};
  int max_links = kMaxSocketLinks;
};

struct WalkedSocket {
  UniqueFd fd;       // O_PATH; of any kind, but no directory and no link
  std::string path;  // without links
};

// `path` is absolute. Everything on the way has to belong to root or the user, and only sticky
// directories may be writable by others. RESOURCE_EXHAUSTED if there is no descriptor left, and
// INVALID_ARGUMENT for all other failures.
Result<WalkedSocket> walk_to_socket(const std::string& path, const SocketWay& way);

}  // namespace agbox
