// SPDX-License-Identifier: Apache-2.0
// How a sandbox's network and primary container are configured: the hardening that every sandbox
// gets, and what its caller asked for. Pure.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "control/sandbox/operations/operation.h"
#include "engine/docker/api/container_spec.h"
#include "guestwire/place.h"

namespace agbox {

// Inside the container.
inline constexpr std::string_view kGuestTarget = guestwire::kProgramInside;
inline constexpr std::string_view kLinkTarget = guestwire::kLinkDirectoryInside;
inline constexpr std::string_view kExecLogTarget = "/var/log/agents-sandbox/";
inline constexpr std::string_view kWorkspace = guestwire::kWorkspace;

NetworkSpec network_settings(std::string_view instance_id, const SandboxFacts& facts);

// The folders on the host that the primary container sees.
struct HostFolders {
  std::filesystem::path guest_program;
  std::filesystem::path link_folder;
  std::filesystem::path exec_logs;
};

ContainerSpec primary_settings(std::string_view instance_id, const SandboxFacts& facts,
                               const HostFolders& folders, std::string_view seccomp_profile);

}  // namespace agbox
