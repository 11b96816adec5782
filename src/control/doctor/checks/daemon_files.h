// SPDX-License-Identifier: Apache-2.0
// The files of the daemon.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control/doctor/check_context.h"

namespace agbox {

// Does the store accept new work?
struct StoreCheck {
  static constexpr std::string_view kName = "store";
  std::string path;
  SpaceStatus space;

  static StoreCheck gather(const CheckContext& context) {
    const Store& store = context.services.store;
    return {.path = store.path(), .space = store.space()};
  }

  void judge(Findings& findings) const {
    if (!space.refuses_new_work) return findings.ok(path + " accepts new work");
    const std::string waiting =
        counted(space.waiting_changes, "accepted change waits", "accepted changes wait");
    findings.broken("the store " + path + " has no free space and refuses new work" +
                        (space.waiting_changes == 0 ? "" : "; " + waiting + " for it"),
                    "free space on the disk of " + path + "; it recovers by itself");
  }
};

// Are the records of all sandboxes readable? No finding if they are.
struct StoredSandboxesCheck {
  static constexpr std::string_view kName = "stored-sandboxes";
  std::vector<std::string> unreadable;

  static StoredSandboxesCheck gather(const CheckContext& context) {
    return {.unreadable = context.directory.unreadable_sandboxes()};
  }

  void judge(Findings& findings) const {
    if (unreadable.empty()) return;
    findings.broken("cannot be read from the store: " + listed(unreadable),
                    "agbox sandbox get <sandbox_id> says why and what to do");
  }
};

}  // namespace agbox
