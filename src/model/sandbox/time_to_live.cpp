// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/time_to_live.h"

namespace agbox {
namespace {

using std::chrono::nanoseconds;

std::optional<nanoseconds> unless_zero(nanoseconds ttl) {
  if (ttl == nanoseconds(0)) return std::nullopt;
  return ttl;
}

}  // namespace

std::optional<nanoseconds> time_to_live(Lifecycle state, bool has_execs,
                                        std::optional<nanoseconds> own_idle_ttl,
                                        const TimesToLive& ttls) {
  switch (state) {
    case Lifecycle::Ready:
      if (has_execs) return std::nullopt;
      return unless_zero(own_idle_ttl.value_or(ttls.idle));
    case Lifecycle::Stopped:
    case Lifecycle::Failed:
      return unless_zero(ttls.cleanup);
    case Lifecycle::Deleted:
      return unless_zero(ttls.history);
    case Lifecycle::Creating:
    case Lifecycle::Resuming:
    case Lifecycle::Stopping:
    case Lifecycle::Deleting:
      break;
  }
  return std::nullopt;  // something is under way already
}

}  // namespace agbox
