// SPDX-License-Identifier: Apache-2.0
// Real descriptors of this process, which takes the part of a sandbox's first one.
#include "place/local/user_limits.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "base/send_descriptors.h"
#include "base/unique_fd.h"
#include "unit/without_inotify.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::Ge;
using testing::IsEmpty;

const std::vector<KernelBudget> kAll(kKernelBudgets.begin(), kKernelBudgets.end());

unsigned long amount_of(const BudgetHolders& holders, KernelBudget budget) {
  return std::stoul(holders.at(budget).how_much);
}

// Other processes of this control group count too.
TEST(UserLimits, TheDescriptorsOfASandboxAreCounted) {
  const std::vector<SandboxGuest> guests = {{.sandbox_id = "s1", .pid = ::getpid()}};
  std::vector<UniqueFd> instances;
  for (int i = 0; i < 3; ++i) instances.emplace_back(::inotify_init1(IN_CLOEXEC));
  for (const char* path : {"/", "/proc", "/dev", "/tmp"}) {
    ASSERT_GE(::inotify_add_watch(instances[0].get(), path, IN_DELETE_SELF), 0);
  }
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const UniqueFd sender(ends[0]);
  const UniqueFd receiver(ends[1]);
  ASSERT_EQ(send_with_descriptors(sender.get(), "x", ends), 1);

  const BudgetHolders holders = find_holders(guests, kAll);
  EXPECT_EQ(holders.at(KernelBudget::InotifyInstances).sandbox_id, "s1");
  EXPECT_THAT(amount_of(holders, KernelBudget::InotifyInstances), Ge(3U));
  EXPECT_THAT(amount_of(holders, KernelBudget::InotifyWatches), Ge(4U));
  EXPECT_THAT(amount_of(holders, KernelBudget::DescriptorsInFlight), Ge(2U));
}

TEST(UserLimits, WithoutAGuestNoSandboxIsNamed) {
  EXPECT_THAT(find_holders({}, kAll), IsEmpty());
  EXPECT_THAT(find_holders({{.sandbox_id = "s1", .pid = 0}}, kAll), IsEmpty());
}

TEST(UserLimits, WhatTheKernelRefusesIsUsedUp) {
  expect_to_hold_without("max_inotify_instances", [] {
    EXPECT_THAT(exhausted_budgets(), ElementsAre(KernelBudget::InotifyInstances));
  });
  expect_to_hold_without("max_inotify_watches", [] {
    EXPECT_THAT(exhausted_budgets(), ElementsAre(KernelBudget::InotifyWatches));
  });
}

}  // namespace
}  // namespace agbox
