// SPDX-License-Identifier: Apache-2.0
// Where the guest and its link are inside a container. Top-level mounts: container root can rename
// a plain folder away and put a false one in its place, but not a mount point.
#pragma once

#include <cstdint>

namespace agbox::guestwire {

inline constexpr char kProgramInside[] = "/.agbox-guest";
inline constexpr char kLinkFolderInside[] = "/.agbox-link";
inline constexpr char kSocketName[] = "guest.sock";

inline constexpr std::uint32_t kProtocolMin = 1;
inline constexpr std::uint32_t kProtocolMax = 1;

// The runtime user's name and home in every container.
inline constexpr char kUserName[] = "agbox";
inline constexpr char kHome[] = "/home/agbox";
inline constexpr char kWorkspace[] = "/workspace";

}  // namespace agbox::guestwire
