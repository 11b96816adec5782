// SPDX-License-Identifier: Apache-2.0
#include "guest/exec_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

namespace agbox::guest {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using testing::StartsWith;

const Identity kUser{.uid = 1000, .gid = 1000, .gids = {}, .home = "/home/agbox"};
const std::string kName = "agbox";

TEST(ExecOrderOf, TheLastOfANameWins) {
  ::setenv("FROM_CONTAINER", "1", 1);
  ::setenv("BOTH", "container", 1);
  ::setenv("HOME", "/root", 1);
  v1::StartExec message;
  for (const char* entry : {"BOTH=caller", "A=first", "A=last=a=b", "EMPTY="}) {
    message.add_environment(entry);
  }
  const ExecOrder order = exec_order_of(std::move(message), {kUser, kName}, {});
  for (const char* entry : {"FROM_CONTAINER=1", "BOTH=caller", "A=last=a=b",
                            "EMPTY=", "HOME=/home/agbox", "USER=agbox"}) {
    EXPECT_THAT(order.environment, Contains(entry).Times(1));
  }
  EXPECT_THAT(order.environment, Not(Contains(StartsWith("A=first"))));
}

TEST(ExecOrderOf, ACallerMayChooseItsHome) {
  v1::StartExec message;
  message.add_environment("HOME=/elsewhere");
  const ExecOrder order = exec_order_of(std::move(message), {kUser, kName}, {});
  EXPECT_THAT(order.environment, Contains("HOME=/elsewhere"));
  EXPECT_THAT(order.environment, Not(Contains("HOME=/home/agbox")));
}

TEST(ExecOrderOf, KeepsEverythingElse) {
  v1::StartExec message;
  message.add_command("printf");
  message.add_command("");
  message.add_command("\xff");
  message.set_working_directory("/workspace");
  message.set_output_limit_bytes(5);
  message.set_free_space_reserve_bytes(6);
  const ExecOrder order = exec_order_of(std::move(message), {kUser, kName}, {});
  EXPECT_THAT(order.command, ElementsAre("printf", "", "\xff"));
  EXPECT_EQ(order.working_directory, "/workspace");
  EXPECT_EQ(order.limits.bytes, 5U);
  EXPECT_EQ(order.limits.free_space_reserve, 6U);
  EXPECT_EQ(order.user, kUser);
}

TEST(ResolveUserOf, CompletesTheEnvironmentOfAnotherUser) {
  v1::StartExec message;
  message.set_user("root");
  message.add_environment("HOME_OF=$HOME");
  ExecOrder order = exec_order_of(std::move(message), {kUser, kName}, {});
  ASSERT_TRUE(resolve_user_of(order));
  EXPECT_EQ(order.user.uid, 0U);
  EXPECT_THAT(order.environment, IsSupersetOf({"USER=root", "HOME=/root", "HOME_OF=$HOME"}));
}

TEST(ResolveUserOf, TheRuntimeUserStaysItself) {
  for (const char* user : {"agbox", "1000"}) {
    v1::StartExec message;
    message.set_user(user);
    ExecOrder order = exec_order_of(std::move(message), {kUser, kName}, {});
    ASSERT_TRUE(resolve_user_of(order));
    EXPECT_EQ(order.user, kUser);
    EXPECT_THAT(order.environment, Contains("USER=agbox"));
  }
}

TEST(ResolveUserOf, ACompanionsUserHasItsOwnName) {
  const std::string name = "postgres";
  for (const char* user : {"", "postgres", "1000"}) {
    v1::StartExec message;
    message.set_user(user);
    ExecOrder order = exec_order_of(std::move(message), {kUser, name}, {});
    ASSERT_TRUE(resolve_user_of(order));
    EXPECT_EQ(order.user, kUser);
    EXPECT_THAT(order.environment, Contains("USER=postgres"));
  }
}

TEST(ResolveUserOf, AUidNeedsNoName) {
  v1::StartExec message;
  message.set_user("54321:12345");
  ExecOrder order = exec_order_of(std::move(message), {kUser, kName}, {});
  ASSERT_TRUE(resolve_user_of(order));
  EXPECT_EQ(order.user.uid, 54321U);
  EXPECT_EQ(order.user.gid, 12345U);
  EXPECT_THAT(order.environment, IsSupersetOf({"USER=54321", "HOME=/"}));
}

TEST(ResolveUserOf, AnUnknownNameIsNamed) {
  v1::StartExec message;
  message.set_user("nobody-here");
  ExecOrder order = exec_order_of(std::move(message), {kUser, kName}, {});
  const auto resolved = resolve_user_of(order);
  ASSERT_FALSE(resolved);
  EXPECT_THAT(resolved.error().message(), HasSubstr("user 'nobody-here' is neither in"));
}

}  // namespace
}  // namespace agbox::guest
