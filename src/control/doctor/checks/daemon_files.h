// SPDX-License-Identifier: Apache-2.0
// The files of the daemon.
#pragma once

#include <sys/stat.h>

#include <optional>

#include "base/file_lock.h"
#include "base/process_stat.h"
#include "base/text_file.h"
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

// Is the lock file the one that this daemon holds?
struct LockCheck {
  static constexpr std::string_view kName = "lock";
  std::string path;
  std::optional<bool> is_held;  // nullopt if the kernel's list of locks cannot be read

  static LockCheck gather(const CheckContext& context) {
    LockCheck check{.path = context.options.lock_file, .is_held = {}};
    // Its pid as in the kernel's list: getpid() may differ in a PID namespace.
    const auto self = parse_process_stat(read_text_file("/proc/self/stat").value_or(""));
    const auto locks = read_text_file("/proc/locks");
    if (check.path.empty() || !self || !locks) return check;
    struct stat found{};
    check.is_held =
        ::lstat(check.path.c_str(), &found) == 0 && holds_flock(*locks, self->pid, found.st_ino);
    return check;
  }

  void judge(Findings& findings) const {
    if (!is_held) return findings.unknown("whether agboxd holds " + path + " cannot be seen");
    if (*is_held) return findings.ok("agboxd holds " + path);
    findings.broken("the lock file " + path +
                        " is not the one that agboxd holds: it was removed or replaced, and a "
                        "second daemon could start",
                    std::string(kRestartDaemon));
  }
};

}  // namespace agbox
