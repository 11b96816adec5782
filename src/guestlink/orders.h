// SPDX-License-Identifier: Apache-2.0
// Orders to a guest, and their messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agbox/guest/v1/link.pb.h"
#include "guestlink/peer.h"
#include "model/guest/exec_order.h"
#include "model/guest/file_order.h"
#include "model/guest/go_order.h"
#include "model/guest/tree_order.h"
#include "model/network/network_probe.h"

namespace agbox::guestlink {

struct MountExpected {
  std::string target;
  bool anonymous_volume = false;
};

struct Expectation {
  // Of a container start that was seen before; none for a new one: its first connection is the
  // guest's, because nothing else runs in it before go().
  std::optional<std::string> secret;
  PeerProcess process;  // as far as known: the engine's State.Pid, or that of an earlier hello
  // The pid of its process as the engine sees it, which may be in another PID namespace than ours.
  // 0: not known, or nothing else runs next to it.
  std::int64_t engine_pid = 0;
  // When the engine had reported it: one that began later has got the pid of one that ended.
  std::uint64_t started_by = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> supplemental_gids;
  std::string image_user;
  std::vector<MountExpected> mounts;
};

// Random; for one container start.
std::string new_secret();

guest::v1::ToGuest welcome_for(const Expectation& expectation);
guest::v1::ToGuest go_for(const GoOrder& order);
guest::v1::ToGuest probe_for(std::uint64_t id, const ProbeTarget& target);
guest::v1::ToGuest receive_for(std::uint64_t id, const TreeOrder& order);
void fill(guest::v1::TerminalSize& message, TerminalSize size);
guest::v1::ToGuest files_for(std::uint64_t id, const FileOrder& order);
guest::v1::ToGuest start_for(const ExecOrder& order, std::uint64_t free_space_reserve_bytes);

}  // namespace agbox::guestlink
