// SPDX-License-Identifier: Apache-2.0
#include "model/exec/exec_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "model/spec/maxima.h"

namespace agbox {
namespace {

using testing::HasSubstr;

v1::CreateExecRequest request(const std::function<void(v1::CreateExecRequest&)>& change = {}) {
  v1::CreateExecRequest wanted;
  wanted.set_sandbox_id("box-1");
  wanted.add_command("true");
  if (change) change(wanted);
  return wanted;
}

struct RequestRow {
  const char* name;
  std::function<void(v1::CreateExecRequest&)> change;
  Reason reason;
  std::string words;
};

class RefusedExecTest : public testing::TestWithParam<RequestRow> {};

TEST_P(RefusedExecTest, NamesTheField) {
  const auto parsed = parse_exec_request(request(GetParam().change));
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().reason(), GetParam().reason);
  EXPECT_THAT(parsed.error().message(), HasSubstr(GetParam().words));
}

const std::string kNul("a\0b", 3);
constexpr auto kInvalid = reason::kInvalidArgument;
constexpr auto kTooMuch = reason::kResourceExhausted;

// They mean nothing there: only the container's own environment is ours.
TEST(ExecRequest, ReservedNamesAreAcceptedInOverrides) {
  v1::CreateExecRequest request;
  request.add_command("env");
  (*request.mutable_env_overrides())["HOST_UID"] = "0";
  (*request.mutable_env_overrides())["AGENTS_SANDBOX_X"] = "1";
  const auto parsed = parse_exec_request(request);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  EXPECT_EQ(parsed->request.env_overrides().at("HOST_UID"), "0");
}

INSTANTIATE_TEST_SUITE_P(
    , RefusedExecTest,
    testing::Values(
        RequestRow{"NoCommand", [](auto& r) { r.clear_command(); }, kInvalid,
                   "command must not be empty"},
        // The command comes before the id, and the id before the rest.
        RequestRow{"NoCommandAndABadId",
                   [](auto& r) {
                     r.clear_command();
                     r.set_exec_id("x");
                   },
                   kInvalid, "command must not be empty"},
        RequestRow{"ABadIdAndABadCwd",
                   [](auto& r) {
                     r.set_exec_id("no spaces");
                     r.set_cwd("tmp");
                   },
                   kInvalid, "exec_id must be 4-200 characters"},
        RequestRow{"AShortId", [](auto& r) { r.set_exec_id("abc"); }, kInvalid,
                   "exec_id must be at least 4 characters"},
        RequestRow{"ARelativeCwd", [](auto& r) { r.set_cwd("tmp"); }, kInvalid,
                   "cwd must be absolute"},
        RequestRow{"ANulInTheCwd", [](auto& r) { r.set_cwd("/" + kNul); }, kInvalid,
                   "cwd contains a NUL"},
        RequestRow{"ANulInTheCommand", [](auto& r) { r.add_command(kNul); }, kInvalid,
                   "command[1]: contains a NUL"},
        RequestRow{"ANamelessVariable", [](auto& r) { (*r.mutable_env_overrides())[""] = "x"; },
                   kInvalid, "env_overrides: a name must not be empty"},
        RequestRow{"AnEqualsSign", [](auto& r) { (*r.mutable_env_overrides())["A=B"] = "x"; },
                   kInvalid, "must not contain '='"},
        RequestRow{"ANulInAValue", [](auto& r) { (*r.mutable_env_overrides())["A"] = kNul; },
                   kInvalid, "env_overrides.A: the value contains a NUL"},
        RequestRow{"AUserThatIsNone", [](auto& r) { r.set_user("no such"); }, kInvalid,
                   "user: the name \"no such\" is neither a name nor a number"},
        RequestRow{"ANulInTheUser", [](auto& r) { r.set_user(kNul); }, kInvalid, "user: the name"},
        RequestRow{"AnEmptyGroup", [](auto& r) { r.set_user("root:"); }, kInvalid,
                   "user: the group is empty"},
        RequestRow{"AUidThatIsTooLarge", [](auto& r) { r.set_user("2147483648"); }, kInvalid,
                   "user: the name 2147483648 is larger than 2147483647"},
        RequestRow{"ALongUser", [](auto& r) { r.set_user(std::string(129, 'a')); }, kInvalid,
                   "user is longer than 128 bytes"},
        RequestRow{"ANegativeTimeout", [](auto& r) { r.mutable_timeout()->set_seconds(-1); },
                   kInvalid, "timeout must not be negative"},
        RequestRow{"ATimeoutOfZero", [](auto& r) { r.mutable_timeout(); }, kInvalid,
                   "timeout must not be 0"},
        RequestRow{"TooManyEntries",
                   [](auto& r) {
                     for (std::size_t i = 0; i < maxima::kCommandTokens; ++i) r.add_command("x");
                   },
                   kTooMuch, "the number of command entries is 16385, at most 16384"},
        RequestRow{"TooManyVariables",
                   [](auto& r) {
                     for (std::size_t i = 0; i <= maxima::kEnvs; ++i) {
                       (*r.mutable_env_overrides())["V" + std::to_string(i)] = "";
                     }
                   },
                   kTooMuch, "the number of env_overrides"},
        RequestRow{"TooLarge", [](auto& r) { r.add_command(std::string(maxima::kExecBytes, 'x')); },
                   kTooMuch, "the size of an exec request"}),
    [](const auto& tested) { return tested.param.name; });

TEST(ExecRequestTest, TakesWhatProgramsReallyGet) {
  const auto parsed = parse_exec_request(request([](auto& r) {
    r.set_exec_id("exec-1");
    r.set_cwd("/");
    for (int i = 0; i < 10'000; ++i) r.add_command("");
    (*r.mutable_env_overrides())["LARGE"] = std::string(1 << 20, 'x');
    (*r.mutable_env_overrides())["HOME"] = "";
    (*r.mutable_env_overrides())["with space"] = "\n";
  }));
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  EXPECT_EQ(parsed->request.command_size(), 10'001);
  EXPECT_EQ(parsed->bytes, parsed->request.ByteSizeLong());
}

TEST(ExecRequestTest, TakesUsersAndTimeouts) {
  using namespace std::chrono_literals;
  for (const char* user : {"", "agbox", "root", "0", "1000", "1000:1000", "web_1.x-y$:video"}) {
    EXPECT_TRUE(parse_exec_request(request([&](auto& r) { r.set_user(user); })).has_value())
        << user;
  }
  EXPECT_EQ(timeout_of(request()), std::nullopt);
  const auto limited = request([](auto& r) {
    r.mutable_timeout()->set_seconds(1);
    r.mutable_timeout()->set_nanos(5);
  });
  ASSERT_TRUE(parse_exec_request(limited).has_value());
  EXPECT_EQ(timeout_of(limited), 1s + 5ns);
  const auto forever = request([](auto& r) { r.mutable_timeout()->set_seconds(315'576'000'000); });
  ASSERT_TRUE(parse_exec_request(forever).has_value());
  EXPECT_EQ(timeout_of(forever), std::nullopt);
}

TEST(ExecRequestTest, AnEmptyIdAndDirectoryAreChosenLater) {
  EXPECT_TRUE(parse_exec_request(request()).has_value());
}

}  // namespace
}  // namespace agbox
