// SPDX-License-Identifier: Apache-2.0
// Does the store know every primary container that carries our label?
#pragma once

#include <cstddef>
#include <ranges>

#include "engine/docker/doctor/check_context.h"
#include "model/object_names.h"

namespace agbox {

struct UnknownPrimariesCheck {
  static constexpr std::string_view kName = "unknown-primaries";
  static constexpr std::size_t kMostNamed = 100;

  Result<std::vector<UnknownPrimary>> unknown;

  static UnknownPrimariesCheck gather(const EngineCheckContext& context) {
    if (!context.engine) return {.unknown = std::unexpected(context.engine.error())};
    const auto& containers = context.engine->containers;
    if (!containers) return {.unknown = std::unexpected(containers.error())};
    return {.unknown =
                context.orphans.unknown_primaries_among(context.request.claims, *containers)};
  }

  void judge(Findings& findings) const {
    if (!unknown) return findings.unknown("not checked: " + unknown.error().message());
    for (const UnknownPrimary& primary : *unknown | std::views::take(kMostNamed)) {
      findings.warn("container " + primary.container_name + " carries our label, for sandbox " +
                        primary.sandbox_id +
                        ", and the store does not know it, as after a backup was restored; agboxd "
                        "never removes it",
                    "docker rm -f " + primary.container_name + " once nothing in it is needed");
    }
    if (unknown->size() > kMostNamed) {
      findings.warn("and " + std::to_string(unknown->size() - kMostNamed) + " more of the kind",
                    "docker ps --all --filter label=" + instance_label());
    }
    if (findings.empty()) {
      findings.ok("every primary container with our label is of a known sandbox");
    }
  }
};

}  // namespace agbox
