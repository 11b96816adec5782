// SPDX-License-Identifier: Apache-2.0
// The parts of this host that no sandbox may see, whatever its caller asks for: the kernel's own
// filesystems, what runs the host, the engine and this daemon. They are recognized by what they
// are, not by name: links, bind mounts and renamed directories lead to the same files.
//
// Every call may wait for a disk.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace agbox {

class ForbiddenSources {
 public:
  // Those of every host, and `paths`. Those that exist are opened now, and recognized after a
  // rename too. `run` is where the programs of the host have their sockets; another one in tests.
  explicit ForbiddenSources(const std::vector<std::filesystem::path>& paths = {},
                            std::filesystem::path run = "/run");

  // Fails if the open file is one of them or of `more`, inside or around one, on a filesystem of
  // the kernel, or has a mount below it for which that holds. `path` is its canonical path, with
  // which the message begins.
  Result<> check(int source, const std::string& path,
                 const std::vector<std::filesystem::path>& more) const;

  // For a socket of that user. Below /run, what is in the user's own directory is not forbidden,
  // except for what starts programs on the host: its message bus, service manager and engines.
  Result<> check_socket(int source, const std::string& path,
                        const std::vector<std::filesystem::path>& more, uid_t user) const;

 private:
  struct Forbidden {
    std::filesystem::path path;
    UniqueFd fd;  // none if it did not exist
  };
  Result<> check_except(int source, const std::string& path,
                        const std::vector<std::filesystem::path>& more,
                        const std::vector<std::filesystem::path>& permitted) const;
  std::filesystem::path run_;
  std::vector<Forbidden> forbidden_;
};

}  // namespace agbox
