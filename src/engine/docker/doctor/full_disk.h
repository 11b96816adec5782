// SPDX-License-Identifier: Apache-2.0
// Whether the engine's disk is full. Its own messages may hide that: overlayfs then mounts
// read-only, and a file is missing.
#pragma once

#include <filesystem>
#include <string>

namespace agbox {

// What to add to an error of an engine that stores its files in `root_directory`; empty while the
// disk has space for the smallest container, or cannot be inspected from here.
std::string full_disk_remark(const std::filesystem::path& root_directory);

}  // namespace agbox
