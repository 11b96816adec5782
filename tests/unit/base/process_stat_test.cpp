// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace agbox {
namespace {

constexpr const char* kRest = " S 7 12 11 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 0 0";

TEST(ProcessStat, StandsAfterANameThatMayContainAnything) {
  for (const char* name : {"(sh)", "(a) b)", "(a) S 1 (b)", "(new\nline)", "()"}) {
    EXPECT_EQ(parse_process_stat(std::string("12 ") + name + kRest),
              (ProcessStat{.pid = 12, .parent = 7, .session = 11, .start_ticks = 98765}))
        << name;
  }
}

TEST(ProcessStat, OfIncompleteTextIsNothing) {
  for (const char* text :
       {"", "12", "12 (sh", "12 (sh)", "12 (sh) S", "12 (sh) S x", ")", "))))))",
        "x (sh) S 7 12 11", "12 (sh) S 7 12 11 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0"}) {
    EXPECT_EQ(parse_process_stat(text), std::nullopt) << text;
  }
}

TEST(ProcessStat, OfThisProcessNamesItsParent) {
  const auto stat = read_process_stat(::getpid());
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->pid, ::getpid());
  EXPECT_EQ(stat->parent, ::getppid());
  EXPECT_EQ(stat->session, ::getsid(0));
  EXPECT_EQ(read_process_stat(0), std::nullopt);
}

}  // namespace
}  // namespace agbox
