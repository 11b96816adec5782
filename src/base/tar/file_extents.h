// SPDX-License-Identifier: Apache-2.0
// The parts of a file that are stored: a sparse file is packed without reading its holes.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <vector>

#include "base/tar/tar_entry.h"

namespace agbox {

// The parts that are not holes, ascending; nullopt if the file has no holes. If there are too many,
// the last one takes the rest with its holes.
std::optional<std::vector<TarExtent>> extents_of(int fd, const struct stat& status);

}  // namespace agbox
