// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <sstream>
#include <string>

namespace agbox {

bool holds_flock(std::string_view proc_locks, pid_t process, ino_t inode) {
  std::istringstream lines{std::string(proc_locks)};
  for (std::string line; std::getline(lines, line);) {
    // Format: "7: FLOCK  ADVISORY  WRITE 1234 00:1a:567 0 EOF"; a waiter has "->" before FLOCK.
    std::istringstream words(line);
    std::string number, kind, strictness, mode, file;
    pid_t holder = 0;
    if (!(words >> number >> kind >> strictness >> mode >> holder >> file)) continue;
    const bool matches = kind == "FLOCK" && mode == "WRITE" && holder == process &&
                         file.ends_with(":" + std::to_string(inode));
    if (matches) return true;
  }
  return false;
}

}  // namespace agbox
