// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/absence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace agbox {
namespace {

using testing::HasSubstr;

AbsenceFacts merely_not_started() {
  AbsenceFacts facts;
  facts.why = "agboxd is not running: nobody listens at /run/agboxd.sock";
  facts.lock = "/run/agboxd.lock";
  facts.program = "/usr/bin/agboxd";
  facts.may_change_firewall = true;
  facts.store = "/data/ids.db";
  facts.config_file = "/config/config.toml";
  facts.engine = {.socket = "/var/run/docker.sock",
                  .problem = {},
                  .is_denied = false,
                  .server = "Docker/28.5.2 (linux)",
                  .api_version = "1.51"};
  return facts;
}

std::string told_of(const std::string& check, const std::function<void(AbsenceFacts&)>& change) {
  AbsenceFacts facts = merely_not_started();
  change(facts);
  std::string told;
  for (const v1::Finding& finding : judge_absence(facts).findings()) {
    if (finding.check() != check) continue;
    told += v1::FindingVerdict_Name(finding.verdict()) + " " + finding.sentence() + " | " +
            finding.remedy() + "\n";
  }
  return told;
}

void nothing(AbsenceFacts&) {}

TEST(Absence, OfADaemonThatCouldStartIsMendedByStartingIt) {
  EXPECT_EQ(told_of("daemon", nothing),
            "FINDING_VERDICT_BROKEN agboxd is not running: nobody listens at /run/agboxd.sock | "
            "systemctl --user start agboxd, or run: /usr/bin/agboxd\n");
  for (const char* check : {"capability", "store", "configuration", "lock", "engine"}) {
    EXPECT_THAT(told_of(check, nothing), HasSubstr("FINDING_VERDICT_OK ")) << check;
  }
  EXPECT_THAT(told_of("engine", nothing),
              HasSubstr("Docker/28.5.2 (linux) (API 1.51) answers at /var/run/docker.sock"));
}

TEST(Absence, OfADaemonThatHangsNamesItsProcess) {
  const std::string told = told_of("daemon", [](auto& facts) { facts.lock_holder = 42; });
  EXPECT_THAT(told, HasSubstr("process 42 is an agboxd that starts, ends or hangs"));
  EXPECT_THAT(told, HasSubstr("end it with: kill 42"));
}

TEST(Absence, NamesWhatWouldKeepADaemonFromStarting) {
  EXPECT_THAT(told_of("capability", [](auto& facts) { facts.may_change_firewall = false; }),
              HasSubstr("BROKEN /usr/bin/agboxd refuses to start: it may not change the firewall "
                        "(CAP_NET_ADMIN) | sudo setcap cap_net_admin+ep /usr/bin/agboxd"));
  EXPECT_THAT(told_of("capability", [](auto& facts) { facts.program.clear(); }),
              HasSubstr("BROKEN there is no agboxd"));
  EXPECT_THAT(told_of("store", [](auto& facts) { facts.store_problem = "/data: Read-only"; }),
              HasSubstr("BROKEN agboxd could not write its store /data/ids.db: /data: Read-only"));
  EXPECT_THAT(told_of("configuration", [](auto& facts) { facts.has_config_file = true; }),
              HasSubstr("/config/config.toml is read at the start"));
}

TEST(Absence, TellsTheWaysApartInWhichAnEngineIsNotThere) {
  EXPECT_THAT(told_of("engine", [](auto& facts) { facts.engine.problem = "No such file"; }),
              HasSubstr("BROKEN no engine answers at /var/run/docker.sock: No such file | sudo "
                        "systemctl start docker"));
  EXPECT_THAT(told_of("engine",
                      [](auto& facts) {
                        facts.engine.problem = "Permission denied";
                        facts.engine.is_denied = true;
                      }),
              HasSubstr("| sudo usermod -aG docker $USER"));
  EXPECT_THAT(told_of("engine",
                      [](auto& facts) {
                        facts.engine = {};
                        facts.engine.problem = "DOCKER_HOST is tcp://x";
                      }),
              HasSubstr("BROKEN DOCKER_HOST is tcp://x | unset DOCKER_HOST"));
}

}  // namespace
}  // namespace agbox
