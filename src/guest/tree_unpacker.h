// SPDX-License-Identifier: Apache-2.0
// Unpacks a tar stream below a directory of the container. Neither the stream nor the image is
// trusted: nothing is written outside of the root, and below the target no symbolic link is
// followed. Everything unpacked belongs to the runtime user; setuid and setgid bits are dropped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/tar/tar_reader.h"

namespace agbox::guest {

struct UnpackOrder {
  uid_t uid = 0;
  gid_t gid = 0;
  // Absolute, inside the container. Links on the way to it are followed inside the root, and
  // missing directories are created.
  std::string target;
  // The stream has one file. It becomes the target itself, unless that ends with a slash or is a
  // directory. Otherwise the entries are unpacked below the target.
  bool is_single_file = false;
  // Nothing is unpacked into a mount: not the target, wherever links of the image lead, and nothing
  // below it.
  bool is_outside_mounts = false;
};

struct Unpacked {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
};

// `root` is a descriptor of the container's root directory. An error names the path inside; what
// was unpacked before it stays. Requires the rights to change owners, and a umask of 0.
Result<Unpacked> unpack_tree(int root, const UnpackOrder& order, TarReader::Source stream);

}  // namespace agbox::guest
