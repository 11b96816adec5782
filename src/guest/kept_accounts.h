// SPDX-License-Identifier: Apache-2.0
// /etc/passwd and /etc/group as the guest leaves them when the container ends. An engine opens both
// when it starts the container again; a FIFO in their place would block it forever.
#pragma once

#include <optional>
#include <string>

namespace agbox::guest {

// The content that each had when the container was prepared; nullopt if it was not a file of the
// image itself, but a link or below a mount.
struct KeptAccounts {
  std::optional<std::string> passwd;
  std::optional<std::string> group;
};

// Replaces each one that is now something else than a file. Needs no capability but CAP_SETUID and
// CAP_SETGID. Nothing else may run in the container, or it could be undone.
void put_back(int root, const KeptAccounts& kept);

}  // namespace agbox::guest
