// SPDX-License-Identifier: Apache-2.0
// Files of the image, accessed as root before anything of the image has run, but with untrusted
// content: no symbolic link is followed and no mount is crossed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace agbox::guest {

// Below `root`, a descriptor of the image's root directory. `problem` is the errno, because callers
// distinguish ENOENT, EROFS and EXDEV.
struct OpenedFile {
  UniqueFd fd;
  int problem = 0;
  explicit operator bool() const { return static_cast<bool>(fd); }
};
OpenedFile open_inside(int root, std::string_view path, int flags);
// The same, but may cross mounts.
OpenedFile open_across_mounts(int root, std::string_view path, int flags);
// The same, but follows links inside the root, as the engine does for mount targets.
OpenedFile open_as_mounted(int root, std::string_view path, int flags);
// The same, but crosses no mount.
OpenedFile open_outside_mounts(int root, std::string_view path, int flags);

// The content; nullopt if the file does not exist. At most 4 MiB.
Result<std::optional<std::string>> read_image_file(int root, std::string_view path);

// Creates or replaces a file atomically. An existing file keeps owner and mode; a new one is ours
// with `mode`.
Result<> replace_image_file(int root, std::string_view directory, std::string_view name,
                            std::string_view text, mode_t mode);

}  // namespace agbox::guest
