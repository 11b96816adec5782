// SPDX-License-Identifier: Apache-2.0
#include "base/kernel_budget.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace agbox {
namespace {

using std::chrono::steady_clock;

// When each was refused last, in ticks of the steady clock; 0 if never. Atomic: refusals happen on
// every thread that waits for something.
std::array<std::atomic<std::int64_t>, kKernelBudgets.size()> refused_at{};

}  // namespace

std::string title_of(KernelBudget budget) {
  switch (budget) {
    case KernelBudget::DescriptorsInFlight:
      return "descriptors in flight in Unix sockets (RLIMIT_NOFILE)";
    case KernelBudget::EpollWatches:
      return "epoll watches (fs.epoll.max_user_watches)";
    case KernelBudget::InotifyInstances:
      return "inotify instances (fs.inotify.max_user_instances)";
    case KernelBudget::InotifyWatches:
      return "inotify watches (fs.inotify.max_user_watches)";
  }
  die("a budget has one of these names");
}

void note_refusal(KernelBudget budget) {
  refused_at[static_cast<std::size_t>(budget)] = steady_clock::now().time_since_epoch().count();
}

std::vector<KernelBudget> refused_within(std::chrono::seconds time) {
  const auto since = (steady_clock::now() - time).time_since_epoch().count();
  std::vector<KernelBudget> refused;
  for (const KernelBudget budget : kKernelBudgets) {
    const std::int64_t at = refused_at[static_cast<std::size_t>(budget)];
    if (at != 0 && at >= since) refused.push_back(budget);
  }
  return refused;
}

}  // namespace agbox
