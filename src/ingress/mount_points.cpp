// SPDX-License-Identifier: Apache-2.0
#include "ingress/mount_points.h"

#include <cerrno>

#include "base/open_beneath.h"
#include "base/path_within.h"
#include "base/shown_path.h"

namespace agbox {
namespace {

// The innermost mount that the target is below; nullptr if none.
const PlacedMount* parent_of(const PlacedMount& mount, const std::vector<PlacedMount>& mounts) {
  const PlacedMount* innermost = nullptr;
  for (const PlacedMount& other : mounts) {
    if (other.target == mount.target || !is_path_within(mount.target, other.target)) continue;
    if (innermost == nullptr || other.target.size() > innermost->target.size()) innermost = &other;
  }
  return innermost;
}

bool has(const PlacedMount& parent, const std::string& target) {
  const std::string below = target.substr(parent.target.size() + 1);
  // As the engine does: links are resolved, and lead nowhere else.
  return open_beneath(parent.source->fd.get(), below.c_str(), O_PATH, RESOLVE_IN_ROOT) ||
         errno != ENOENT;
}

}  // namespace

Result<> check_mount_points(const std::vector<PlacedMount>& mounts) {
  for (const PlacedMount& mount : mounts) {
    const PlacedMount* const parent = parent_of(mount, mounts);
    if (parent == nullptr || parent->is_writable || has(*parent, mount.target)) continue;
    return fail(reason::kInvalidArgument,
                "mount target " + shown_path(mount.target) + " does not exist in " +
                    shown_path(parent->source->path) + ", which is mounted read-only at " +
                    shown_path(parent->target) + "; create it there, or choose another target");
  }
  return {};
}

}  // namespace agbox
