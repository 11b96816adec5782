// SPDX-License-Identifier: Apache-2.0
// Files of the image, touched as container root before anything of the image has run, yet laid out
// by whoever made the image: no symbolic link is followed and no mount is entered.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace agbox::guest {

// Below `root`, a descriptor of the image's root folder. The errno of a failure is in `problem`,
// because callers tell "not there", "read-only" and "a mount" apart.
struct OpenedFile {
  UniqueFd fd;
  int problem = 0;
  explicit operator bool() const { return static_cast<bool>(fd); }
};
OpenedFile open_inside(int root, std::string_view path, int flags);
// The same, but a mount may lie on the way.
OpenedFile open_across_mounts(int root, std::string_view path, int flags);
// The same with links followed inside of the root, as the engine did when it mounted something
// there.
OpenedFile open_as_mounted(int root, std::string_view path, int flags);

// The whole text; nothing where there is no such file. At most 4 MiB.
Result<std::optional<std::string>> read_image_file(int root, std::string_view path);

// Replaces or creates a file of this folder in one step. An existing file keeps its owner and mode;
// a new one is ours with `mode`.
Result<> replace_image_file(int root, std::string_view folder, std::string_view name,
                            std::string_view text, mode_t mode);

}  // namespace agbox::guest
