// SPDX-License-Identifier: Apache-2.0
// Whether something that carries our labels belongs to a sandbox, or is left from one. Pure: it is
// given what the engine listed and what the sandbox claims, and says what to do and why.
#pragma once

#include <set>
#include <string>

#include "model/sandbox/sandbox_facts.h"

namespace agbox {

// What a sandbox says is its own.
struct SandboxClaim {
  enum class Kind {
    Unknown,     // the store has no such sandbox
    Deleted,     // it is deleted, and whatever is left of it was missed
    Everything,  // an operation is under way, or its record cannot be read: all of it is its own
    Listed,      // what is in the two members below
  };
  Kind kind = Kind::Unknown;
  std::set<std::string> container_ids{};
  bool has_network = false;
};

// The objects that the facts list, and no others.
inline SandboxClaim listed_claim(const SandboxFacts& facts) {
  SandboxClaim claim{.kind = SandboxClaim::Kind::Listed, .has_network = facts.subnet.has_value()};
  for (const auto& [name, container] : facts.containers) {
    if (!container.container_id().empty()) claim.container_ids.insert(container.container_id());
  }
  return claim;
}

enum class Fate { Keep, Remove, Report };

struct Judgement {
  Fate fate = Fate::Keep;
  std::string reason{};  // why it is removed or reported

  bool operator==(const Judgement&) const = default;
};

// An unknown primary may hold a user's work, as after the store was restored from a backup: it is
// reported and never removed.
Judgement judge_container(const SandboxClaim& claim, const std::string& container_id,
                          bool is_primary);

// `beside_unknown_primary`: a primary of the same sandbox was reported, and needs it.
Judgement judge_network(const SandboxClaim& claim, bool beside_unknown_primary);

}  // namespace agbox
