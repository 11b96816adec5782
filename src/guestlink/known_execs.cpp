// SPDX-License-Identifier: Apache-2.0
#include "guestlink/known_execs.h"

namespace agbox::guestlink {

bool KnownExecs::add(std::string_view exec_id) {
  return execs_.try_emplace(std::string(exec_id)).second;
}

KnownExecs::Verdict KnownExecs::ended(std::string_view exec_id) {
  const auto exec = execs_.find(exec_id);
  if (exec == execs_.end() || exec->second.ended) return Verdict::Violation;
  if (exec->second.forgotten) {
    execs_.erase(exec);  // no further report is possible
    return Verdict::TooLate;
  }
  exec->second.ended = true;
  return Verdict::Accepted;
}

KnownExecs::Verdict KnownExecs::truncated(std::string_view exec_id) {
  const auto exec = execs_.find(exec_id);
  if (exec == execs_.end() || exec->second.ended || exec->second.truncated)
    return Verdict::Violation;
  exec->second.truncated = true;
  return exec->second.forgotten ? Verdict::TooLate : Verdict::Accepted;
}

// A guest reports every end again after a reconnect, without being asked: it may be in flight.
bool KnownExecs::forget(std::string_view exec_id) {
  const auto exec = execs_.find(exec_id);
  if (exec == execs_.end()) return false;
  if (exec->second.ended) {
    execs_.erase(exec);
  } else {
    exec->second.forgotten = true;
  }
  return true;
}

}  // namespace agbox::guestlink
