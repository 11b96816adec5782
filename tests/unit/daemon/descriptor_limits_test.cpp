// SPDX-License-Identifier: Apache-2.0
#include "daemon/descriptor_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace agbox {
namespace {

TEST(DescriptorLimits, TheDaemonHasFourTimesAsManyAsAContainer) {
  EXPECT_EQ(container_descriptor_limit(20'000), 5'000);
  EXPECT_EQ(container_descriptor_limit(262'144), 65'536);
}

TEST(DescriptorLimits, AContainerHasWhatProgramsNeedAndNoMore) {
  EXPECT_EQ(container_descriptor_limit(1'024), 1'024);
  EXPECT_EQ(container_descriptor_limit(RLIM_INFINITY), 65'536);
}

TEST(DescriptorLimits, TheSoftLimitIsRaisedWithinTheHardOne) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = 512, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(descriptor_limit(), 512U);
  raise_descriptor_limit();
  EXPECT_GT(descriptor_limit(), 512U);
  EXPECT_LE(descriptor_limit(), before.rlim_max);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace agbox
