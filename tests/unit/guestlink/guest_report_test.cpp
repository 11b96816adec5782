// SPDX-License-Identifier: Apache-2.0
#include "guestlink/guest_report.h"

#include <gtest/gtest.h>

namespace agbox::guestlink {
namespace {

namespace v1 = guest::v1;

TEST(Readable, KeepsTextAndReplacesTheRest) {
  EXPECT_EQ(readable("a\tb\n", 100), "a\tb\n");
  EXPECT_EQ(readable("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x90\x99", 100),
            "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x90\x99");
  EXPECT_EQ(readable(std::string_view("\0\x1B\x7F\r", 4), 100), "????");
  EXPECT_EQ(readable("\xC3", 100), "?");
  EXPECT_EQ(readable("\xC0\x80", 100), "??");            // overlong
  EXPECT_EQ(readable("\xED\xA0\x80", 100), "???");       // a surrogate
  EXPECT_EQ(readable("\xF4\x90\x80\x80", 100), "????");  // above the last code point
  EXPECT_EQ(readable("\xE2\x82", 100), "??");
}

TEST(Readable, KeepsTheLastOfALongText) {
  EXPECT_EQ(readable("0123456789", 4), "6789");
  EXPECT_EQ(readable("x\xE2\x82\xAC", 2), "??");  // cut inside a character
}

TEST(EntrypointFailure, OfAnUnknownCauseIsNone) {
  guest::v1::EntrypointFailed failed;
  EXPECT_EQ(to_failure(failed), std::nullopt);
  failed.set_cause(static_cast<guest::v1::EntrypointFailed::Cause>(77));
  EXPECT_EQ(to_failure(failed), std::nullopt);
}

TEST(Fill, BoundsWhatAGuestMaySay) {
  guest::v1::Prepared prepared;
  for (int i = 0; i < 1000; ++i) prepared.add_notes(std::string(10000, 'x'));
  for (int i = 0; i < 2000; ++i) prepared.add_mounts();
  GuestHello hello;
  fill(hello, prepared);
  EXPECT_EQ(hello.notes.size(), 32U);
  EXPECT_EQ(hello.notes[0].size(), 1024U);
  EXPECT_EQ(hello.mounts.size(), 1024U);
}

TEST(Fill, MakesTheTargetOfAMountReadable) {
  guest::v1::Prepared prepared;
  prepared.add_mounts()->set_target("/a\x1B[31m\r");
  prepared.add_mounts()->set_target(std::string(100000, 'x'));
  GuestHello hello;
  fill(hello, prepared);
  EXPECT_EQ(hello.mounts[0].target, "/a?[31m?");
  EXPECT_EQ(hello.mounts[1].target.size(), 4096U);
}

v1::ExecEnded ended(v1::ExecEnded::How how, int code) {
  v1::ExecEnded message;
  message.set_exec_id("exec-1");
  message.set_how(how);
  message.set_code(code);
  return message;
}

TEST(ExecEndReport, CodesAreOnesThatCanBe) {
  const auto code = [](v1::ExecEnded::How how, int said) {
    return to_exec_end(ended(how, said))->code;
  };
  EXPECT_EQ(code(v1::ExecEnded::HOW_EXITED, 255), 255);
  EXPECT_EQ(code(v1::ExecEnded::HOW_EXITED, -1), 0);
  EXPECT_EQ(code(v1::ExecEnded::HOW_EXITED, 1 << 30), 255);
  EXPECT_EQ(code(v1::ExecEnded::HOW_SIGNALED, 9), 9);
  EXPECT_EQ(code(v1::ExecEnded::HOW_SIGNALED, 0), 1);
  EXPECT_EQ(code(v1::ExecEnded::HOW_SIGNALED, 2147483647), 64) << "128 is added to it";
  EXPECT_EQ(code(v1::ExecEnded::HOW_NOT_STARTED, 127), 127);
  EXPECT_EQ(code(v1::ExecEnded::HOW_NOT_STARTED, 0), 126);
  EXPECT_EQ(code(v1::ExecEnded::HOW_CANCELLED, 5), 0);
  EXPECT_EQ(code(v1::ExecEnded::HOW_RUNNER_LOST, 5), 0);
  EXPECT_FALSE(to_exec_end(ended(v1::ExecEnded::HOW_UNSPECIFIED, 0)));
}

TEST(ExecEndReport, TextAndNumbersAreBounded) {
  v1::ExecEnded message = ended(v1::ExecEnded::HOW_NOT_STARTED, 126);
  message.set_detail(std::string(900000, '\xFF') + "\x1B[2J no such file");
  message.set_user_cpu_microseconds(~std::uint64_t{0});
  message.set_system_cpu_microseconds(17);
  message.set_peak_memory_bytes(~std::uint64_t{0});
  const auto end = to_exec_end(message);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->detail.size(), 1024U);
  EXPECT_TRUE(end->detail.ends_with("??[2J no such file"));
  // What google.protobuf.Duration can carry.
  EXPECT_LT(end->user_cpu_microseconds / 1'000'000, 315'576'000'000U);
  EXPECT_EQ(end->system_cpu_microseconds, 17U);
}

}  // namespace
}  // namespace agbox::guestlink
