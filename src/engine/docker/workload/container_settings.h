// SPDX-License-Identifier: Apache-2.0
// How a sandbox's network and primary container are configured: the hardening of every sandbox, and
// what its caller requested. Pure.
#pragma once

#include <string_view>

#include "engine/docker/api/container_spec.h"
#include "engine/engine.h"

namespace agbox {

NetworkSpec network_settings(std::string_view instance_id, const SandboxFacts& facts);

ContainerSpec primary_settings(std::string_view instance_id, const SandboxFacts& facts,
                               const Attachments& attachments, std::string_view seccomp_profile);

}  // namespace agbox
