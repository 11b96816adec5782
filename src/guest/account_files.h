// SPDX-License-Identifier: Apache-2.0
// The user database of an image as text: who a USER is, and the same files with the runtime user in
// them. Pure functions; lines that we do not understand stay as they are.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace agbox::guest {

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> gids;  // supplemental, without gid
  std::string home = "/";

  bool operator==(const Identity&) const = default;
};

struct AccountFiles {
  std::string passwd;
  std::string group;
  std::optional<std::string> shadow;  // where the image has one

  bool operator==(const AccountFiles&) const = default;
};

struct RuntimeUserPlan {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> supplemental_gids;
  std::string shell;  // for an entry that has no usable one yet
};

// The files with the user agbox in them. Doing it again changes nothing.
//
// Where the image has a user of that uid already, agbox comes in front of it and takes over its
// shell and groups: the uid's name is agbox from then on. The old name stays behind it, because the
// image's USER and an entrypoint's `gosu name` still mean it, also when the container starts again.
// For uid 0 it is the other way round: root stays root, and agbox is an alias behind it.
AccountFiles with_runtime_user(const AccountFiles& files, const RuntimeUserPlan& plan);

// The runtime user as the written files have it.
Identity runtime_identity(const AccountFiles& files, const RuntimeUserPlan& plan);

// An image's USER (name, uid, name:group, uid:gid, or nothing for root), as the engine reads it.
Result<Identity> resolve_user(std::string_view user, const AccountFiles& files);

}  // namespace agbox::guest
