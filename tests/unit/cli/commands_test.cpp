// SPDX-License-Identifier: Apache-2.0
// The commands of agbox against a daemon that answers what the test says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

void introduce(test::ScriptedDaemon& daemon) {
  daemon.ping_response.set_daemon("agboxd");
  daemon.ping_response.set_version("9.8.7");
  daemon.ping_response.set_instance_id("11111111-2222-4333-8444-555555555555");
}

TEST_F(Commands, PingTellsWhoAnsweredAndHowFast) {
  test::ScriptedDaemon daemon(socket());
  introduce(daemon);
  EXPECT_EQ(run({"ping"}), 0);
  EXPECT_EQ(error_, "");
  EXPECT_THAT(out_, StartsWith("daemon: agboxd\nversion: 9.8.7\n"
                               "instance: 11111111-2222-4333-8444-555555555555\n"
                               "socket: " +
                               socket().string() + "\nround trip: "));
  EXPECT_THAT(out_, testing::ContainsRegex("round trip: [0-9]+\\.[0-9][0-9][0-9] ms\n$"));
}

TEST_F(Commands, PingTellsTheStateOfTheIsolation) {
  test::ScriptedDaemon daemon(socket());
  introduce(daemon);
  daemon.ping_response.add_features("isolation");
  EXPECT_EQ(run({"ping"}), 0);
  EXPECT_THAT(out_, HasSubstr("\nisolation: in place\n"));
  daemon.ping_response.set_isolation_repairs(2);
  daemon.ping_response.set_isolation_last_repair("table inet x is missing");
  EXPECT_EQ(run({"ping"}), 0);
  EXPECT_THAT(
      out_, HasSubstr("\nisolation: in place; restored 2 times, last: table inet x is missing\n"));
  daemon.ping_response.set_isolation_shortcoming("the kernel knows no nftables");
  EXPECT_EQ(run({"ping"}), 0);
  EXPECT_THAT(out_, HasSubstr("\nisolation: the kernel knows no nftables\n"));
}

TEST_F(Commands, PingAsJsonIsTheDaemonsAnswer) {
  test::ScriptedDaemon daemon(socket());
  introduce(daemon);
  daemon.ping_response.add_features("x");
  EXPECT_EQ(run({"ping", "--json"}), 0);
  EXPECT_EQ(
      out_,
      "{\n  \"version\": \"9.8.7\",\n  \"daemon\": \"agboxd\",\n  \"features\": [\n    \"x\"\n"
      "  ],\n  \"instance_id\": \"11111111-2222-4333-8444-555555555555\",\n"
      "  \"engine\": \"\",\n  \"isolation_shortcoming\": \"\",\n"
      "  \"isolation_repairs\": \"0\",\n  \"isolation_last_repair\": \"\",\n"
      "  \"limits_shortcoming\": \"\"\n}\n");
}

TEST_F(Commands, PingTellsWhatTheUserHasNothingLeftOf) {
  test::ScriptedDaemon daemon(socket());
  introduce(daemon);
  daemon.ping_response.set_limits_shortcoming("epoll watches are used up");
  EXPECT_EQ(run({"ping"}), 0);
  EXPECT_THAT(out_, HasSubstr("\nlimits: epoll watches are used up\n"));
}

TEST_F(Commands, PingWithoutADaemonSaysHowToStartIt) {
  EXPECT_EQ(run({"ping"}), 1);
  EXPECT_EQ(out_, "");
  EXPECT_EQ(error_, "ping: agboxd is not running: socket " + socket().string() +
                        " does not exist; start it with \"agbox daemon start\"\n");
}

TEST_F(Commands, PingShowsTheDaemonsRefusalBare) {
  test::ScriptedDaemon daemon(socket());
  daemon.status = test::ErrorInfoBytes{.code = grpc::RESOURCE_EXHAUSTED,
                                       .message = "the disk is full",
                                       .reason = "RESOURCE_EXHAUSTED"}
                      .status();
  EXPECT_EQ(run({"ping"}), 1);
  EXPECT_EQ(error_, "ping: the disk is full\n");
}

TEST_F(Commands, PingCannotDriveTheTerminal) {
  test::ScriptedDaemon daemon(socket());
  daemon.ping_response.set_version("1\x1b[2J");
  EXPECT_EQ(run({"ping"}), 0);
  EXPECT_THAT(out_, HasSubstr("version: 1\\x1b[2J\n"));
}

TEST_F(Commands, PingWithoutARuntimeDirectorySaysWhatToSet) {
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(run({"ping"}), 1);
  EXPECT_THAT(error_, HasSubstr("XDG_RUNTIME_DIR is required"));
}

TEST_F(Commands, VersionShowsBothPrograms) {
  test::ScriptedDaemon daemon(socket());
  introduce(daemon);
  EXPECT_EQ(run({"version"}), 0);
  EXPECT_THAT(out_, MatchesRegex("agbox: [0-9.]+\nagboxd: 9\\.8\\.7\n"));
  EXPECT_EQ(run({"version", "--json"}), 0);
  EXPECT_THAT(out_, MatchesRegex("\\{\n  \"agbox\": \"[0-9.]+\",\n  \"agboxd\": \"9.8.7\"\n\\}\n"));
}

TEST_F(Commands, VersionNeverFails) {
  EXPECT_EQ(run({"version"}), 0);
  EXPECT_THAT(out_, HasSubstr("agboxd: unavailable\n"));
  EXPECT_EQ(error_, "");
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(run({"version", "--json"}), 0);
  EXPECT_THAT(out_, HasSubstr("\"agboxd\": null"));
}

}  // namespace
}  // namespace agbox::cli
