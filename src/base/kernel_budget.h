// SPDX-License-Identifier: Apache-2.0
// What the kernel counts per user and not per process or container. Sandboxes run as the daemon's
// user, so one of them can use such a budget up: code that is refused something waits for it in
// another way, and notes it here, for `agbox ping` and `agbox doctor`.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <vector>

namespace agbox {

enum class KernelBudget { DescriptorsInFlight, EpollWatches, InotifyInstances, InotifyWatches };

inline constexpr auto kKernelBudgets =
    std::to_array({KernelBudget::DescriptorsInFlight, KernelBudget::EpollWatches,
                   KernelBudget::InotifyInstances, KernelBudget::InotifyWatches});

// For people, with what limits it: "inotify watches (fs.inotify.max_user_watches)".
std::string title_of(KernelBudget budget);

// The kernel refused it to this process. From any thread.
void note_refusal(KernelBudget budget);
// Those that were refused within that time.
std::vector<KernelBudget> refused_within(std::chrono::seconds time);

}  // namespace agbox
