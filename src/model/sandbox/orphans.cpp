// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/orphans.h"

#include "base/check.h"

namespace agbox {
namespace {

Judgement removal(const char* reason) {
  return {.fate = Fate::Remove, .reason = reason};
}

Judgement report(const char* reason) {
  return {.fate = Fate::Report, .reason = reason};
}

}  // namespace

Judgement judge_container(const SandboxClaim& claim, const std::string& container_id,
                          bool is_primary) {
  switch (claim.kind) {
    case SandboxClaim::Kind::Unknown:
      if (is_primary) return report("no sandbox of this store has it as its primary container");
      return removal("it belongs to a sandbox that is not in this store");
    case SandboxClaim::Kind::Deleted:
      return removal("its sandbox is deleted");
    case SandboxClaim::Kind::Everything:
      return {};
    case SandboxClaim::Kind::Listed:
      if (claim.container_ids.contains(container_id)) return {};
      if (!is_primary) return removal("its sandbox has no such container");
      if (claim.container_ids.empty()) return removal("it is left from a create that failed");
      return report("its sandbox has another primary container");
  }
  die("a claim of no kind");
}

Judgement judge_network(const SandboxClaim& claim, bool beside_unknown_primary) {
  switch (claim.kind) {
    case SandboxClaim::Kind::Unknown:
      if (beside_unknown_primary) return {};
      return removal("it belongs to a sandbox that is not in this store");
    case SandboxClaim::Kind::Deleted:
      return removal("its sandbox is deleted");
    case SandboxClaim::Kind::Everything:
      return {};
    case SandboxClaim::Kind::Listed:
      if (claim.has_network || beside_unknown_primary) return {};
      return removal("it is left from a create that failed");
  }
  die("a claim of no kind");
}

}  // namespace agbox
