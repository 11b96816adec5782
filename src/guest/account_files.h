// SPDX-License-Identifier: Apache-2.0
// The image's user database as text: resolves USER and adds the runtime user. Pure functions; lines
// that cannot be parsed stay as they are.
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
  std::optional<std::string> shadow;  // if the image has one

  bool operator==(const AccountFiles&) const = default;
};

struct RuntimeUserPlan {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> supplemental_gids;
  std::string shell;  // for an entry without a usable one
};

// Adds the user agbox; idempotent.
//
// If the image already has a user with that uid, agbox is inserted before it and takes over its
// shell and groups, so that the uid's name is agbox. The old name stays, because the image's USER
// and an entrypoint's `gosu name` may refer to it, also when the container starts again. For uid 0
// it is the reverse: root stays root, and agbox is an alias after it.
AccountFiles with_runtime_user(const AccountFiles& files, const RuntimeUserPlan& plan);

// The runtime user according to the written files.
Identity runtime_identity(const AccountFiles& files, const RuntimeUserPlan& plan);

// The first name of a uid, or the number itself if it has none.
std::string user_name_of(uid_t uid, std::string_view passwd);

// Resolves an image's USER (name, uid, name:group, uid:gid, or empty for root) as the engine does.
Result<Identity> resolve_user(std::string_view user, const AccountFiles& files);

}  // namespace agbox::guest
