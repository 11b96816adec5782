// SPDX-License-Identifier: Apache-2.0
#include "daemon/descriptor_limits.h"

#include <sys/resource.h>

#include <algorithm>

namespace agbox {
namespace {

constexpr std::uint64_t kDaemonsShare = 4;
// Plenty for builds, servers and databases. Engines whose own limit is lower refuse to start a
// container with more, unless they have CAP_SYS_RESOURCE.
constexpr std::uint64_t kMostInContainer = 65'536;
// The default of most systems: with fewer, programs fail that run everywhere else.
constexpr std::uint64_t kLeastInContainer = 1'024;

}  // namespace

// Each client also needs a connection; the usual default of 1024 exists for programs that use
// select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const auto enough = std::min<rlim_t>(limit.rlim_max, kDaemonsShare * kMostInContainer);
  limit.rlim_cur = std::max(limit.rlim_cur, enough);
  ::setrlimit(RLIMIT_NOFILE, &limit);  // on failure the old limit stays
}

std::uint64_t descriptor_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

std::int64_t container_descriptor_limit(std::uint64_t daemon_limit) {
  return static_cast<std::int64_t>(
      std::clamp(daemon_limit / kDaemonsShare, kLeastInContainer, kMostInContainer));
}

}  // namespace agbox
