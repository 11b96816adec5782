// SPDX-License-Identifier: Apache-2.0
// How a sandbox's network and containers are configured: the hardening of every sandbox, and what
// its caller requested. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/docker/api/container_spec.h"
#include "engine/engine.h"

namespace agbox {

NetworkSpec network_settings(std::string_view instance_id, const SandboxFacts& facts);

// What every container has alike, as far as it depends on the machine.
struct Hardening {
  std::string seccomp_profile;  // the JSON text
  std::int64_t descriptor_limit = 0;
};

ContainerSpec primary_settings(std::string_view instance_id, const SandboxFacts& facts,
                               const Attachments& attachments, const Hardening& hardening);

// Fails if a limit cannot be understood, which was checked when the sandbox was accepted.
Result<ContainerSpec> companion_settings(std::string_view instance_id, const CompanionFacts& facts,
                                         const Attachments& attachments,
                                         const Hardening& hardening);

}  // namespace agbox
