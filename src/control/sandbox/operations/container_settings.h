// SPDX-License-Identifier: Apache-2.0
// How a sandbox's network and primary container are configured: the hardening that every sandbox
// gets, and what its caller asked for. Pure.
#pragma once

#include <string>
#include <string_view>

#include "control/sandbox/operations/operation.h"
#include "engine/docker/api/container_spec.h"
#include "guestwire/place.h"
#include "model/sandbox/attachments.h"

namespace agbox {

// Inside the container.
inline constexpr std::string_view kGuestTarget = guestwire::kProgramInside;
inline constexpr std::string_view kWorkspace = guestwire::kWorkspace;

NetworkSpec network_settings(std::string_view instance_id, const SandboxFacts& facts);

ContainerSpec primary_settings(std::string_view instance_id, const SandboxFacts& facts,
                               const Attachments& attachments, std::string_view seccomp_profile);

}  // namespace agbox
