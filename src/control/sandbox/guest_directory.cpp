// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/guest_directory.h"

#include <utility>

namespace agbox {

GuestResult<> adopt_guest(Services& services, const SandboxFacts& facts) {
  const auto known = facts.containers.find("");
  const store::v1::Container primary =
      known == facts.containers.end() ? store::v1::Container() : known->second;
  auto adopted = services.guests.adopt(
      facts.sandbox_id,
      {.device = primary.guest_folder_device(), .inode = primary.guest_folder_inode()},
      facts.link_root());
  if (!adopted) return adopted;
  guestlink::Expectation expected;
  expected.secret = primary.secret();
  expected.uid = facts.created_with.host_uid();
  expected.gid = facts.created_with.host_gid();
  return services.guests.expect(facts.sandbox_id, std::move(expected));
}

GuestDirectory directory_after(const GuestResult<>& adopted) {
  if (adopted) return GuestDirectory::Usable;
  return adopted.error().kind() == GuestErrorKind::Unavailable ? GuestDirectory::Unreachable
                                                               : GuestDirectory::Gone;
}

}  // namespace agbox
