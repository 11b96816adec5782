// SPDX-License-Identifier: Apache-2.0
#include "guest/memory_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "unit/temp_directory.h"

namespace agbox::guest {
namespace {

class MemoryEventsTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = group_.path() / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  TempDirectory group_;
};

TEST_F(MemoryEventsTest, KillsSinceTheBeginningAreExplainedWithTheLimit) {
  write("memory.max", "67108864\n");
  write("memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 3\noom_group_kill 0\n");
  const MemoryEvents events(group_.path());
  EXPECT_EQ(events.explain(), "");
  write("memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 4\n");
  EXPECT_EQ(events.explain(),
            "out of memory: while it ran, the kernel killed 1 process of the sandbox, whose memory "
            "limit is 64 MiB");
}

TEST_F(MemoryEventsTest, TheFirstVersionOfControlGroupsIsReadToo) {
  write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
  const MemoryEvents events(group_.path());
  write("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  EXPECT_EQ(
      events.explain(),
      "out of memory: while it ran, the kernel killed 2 processes of the sandbox, which has no "
      "memory limit of its own");
  write("memory/memory.limit_in_bytes", "6291456\n");
  EXPECT_THAT(events.explain(), testing::EndsWith("limit is 6 MiB"));
}

TEST_F(MemoryEventsTest, WhatCannotBeReadIsNotClaimed) {
  const MemoryEvents unknown(group_.path());
  EXPECT_EQ(unknown.explain(), "");
  write("memory.events", "oom_kill 5\n");
  EXPECT_EQ(unknown.explain(), "") << "they may be older";
  const MemoryEvents events(group_.path());
  write("memory.events", "nonsense\noom_kill x\n");
  EXPECT_EQ(events.explain(), "");
}

}  // namespace
}  // namespace agbox::guest
