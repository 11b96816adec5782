// SPDX-License-Identifier: Apache-2.0
// Prepares a container of any image for the runtime user, before anything of the image runs: the
// user agbox, its home and workspace, passwordless sudo, and a check of every mount.
#pragma once

#include <string>
#include <vector>

#include "agbox/guest/v1/link.pb.h"
#include "guest/account_files.h"
#include "guest/kept_accounts.h"

namespace agbox::guest {

struct Preparation {
  Identity runtime_user;
  std::string runtime_user_name;
  Identity image_user;
  std::string root_home;  // the engine's HOME, because it started us as root
  KeptAccounts kept_accounts;
  v1::Prepared report;
};

// `root` is a descriptor of the container's root directory. What cannot be done, for instance on a
// read-only root, becomes a note in the report; commands then run with numeric IDs only.
Preparation prepare(int root, const v1::Welcome& welcome);
// Of a container whose image runs already: changes nothing in it. Commands run as this user, which
// is resolved like an image's USER.
Preparation prepare_joined(int root, const std::string& user);

}  // namespace agbox::guest
