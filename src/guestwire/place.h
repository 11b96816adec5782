// SPDX-License-Identifier: Apache-2.0
// Paths of the guest and its link inside a container. Both are top-level mounts: root in the
// container can replace a plain directory, but not a mount point.
#pragma once

#include <cstdint>

namespace agbox::guestwire {

inline constexpr char kProgramInside[] = "/.agbox-guest";
inline constexpr char kLinkDirectoryInside[] = "/.agbox-link";
inline constexpr char kSocketName[] = "guest.sock";

inline constexpr std::uint32_t kProtocolMin = 1;
inline constexpr std::uint32_t kProtocolMax = 2;
// The first with users, input and terminals of execs. A guest of an older one would ignore them.
inline constexpr std::uint32_t kProtocolWithExecUsers = 2;
// The first with PutFiles and GetFiles. The guest of an older daemon lives as long as its
// container.
inline constexpr std::uint32_t kProtocolWithFiles = 2;

inline constexpr char kUserName[] = "agbox";
inline constexpr char kHome[] = "/home/agbox";
inline constexpr char kWorkspace[] = "/workspace";

}  // namespace agbox::guestwire
