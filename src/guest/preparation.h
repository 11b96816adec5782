// SPDX-License-Identifier: Apache-2.0
// Makes a container of any image fit for the runtime user, before anything of the image runs: the
// user agbox, its home and workspace, sudo without a password, and a look at every mount.
#pragma once

#include <string>
#include <vector>

#include "agbox/guest/v1/link.pb.h"
#include "guest/account_files.h"

namespace agbox::guest {

struct Preparation {
  Identity runtime_user;
  Identity image_user;
  std::string root_home;  // what the engine has put into HOME, because it started us as root
  v1::Prepared report;
};

// `root` is a descriptor of the container's root folder. What cannot be done, on a read-only root
// for instance, is a note of the report; commands then run with numeric ids alone.
Preparation prepare(int root, const v1::Welcome& welcome);

}  // namespace agbox::guest
