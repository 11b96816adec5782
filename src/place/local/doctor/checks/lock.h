// SPDX-License-Identifier: Apache-2.0
// The lock that keeps a second daemon from starting.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/file_lock.h"
#include "base/process_stat.h"
#include "base/text_file.h"
#include "place/local/doctor/local_diagnosis.h"

namespace agbox {

// Is the lock file the one that this daemon holds?
struct LockCheck {
  static constexpr std::string_view kName = "lock";
  std::string path;
  std::optional<bool> is_held;  // nullopt if the kernel's list of locks cannot be read

  static LockCheck gather(const LocalCheckContext& context) {
    LockCheck check{.path = context.request.lock_file, .is_held = {}};
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
