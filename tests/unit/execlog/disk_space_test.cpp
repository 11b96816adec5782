// SPDX-License-Identifier: Apache-2.0
#include "execlog/disk_space.h"

#include <gtest/gtest.h>

namespace agbox {
namespace {

TEST(DiskSpaceTest, TheReserveIsATwentiethAndAtMost256MiB) {
  EXPECT_EQ(free_space_reserve(0), 0U);
  EXPECT_EQ(free_space_reserve(1000), 50U);
  EXPECT_EQ(free_space_reserve(std::uint64_t{5} << 30), std::uint64_t{256} << 20);
  EXPECT_EQ(free_space_reserve(std::uint64_t{5000} << 30), std::uint64_t{256} << 20);
}

}  // namespace
}  // namespace agbox
