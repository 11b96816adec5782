// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/unreachable_daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace agbox::cli {
namespace {

using testing::HasSubstr;

sdk::DaemonInspection not_started() {
  return {.lock = "/run/agboxd.lock",
          .store = "/data/ids.db",
          .config_file = "/config/config.toml",
          .program = "/usr/bin/agboxd",
          .may_change_firewall = true,
          .engine = {.socket = "/var/run/docker.sock",
                     .server = "Docker/28.5.2 (linux)",
                     .api_version = "1.51"}};
}

// "FINDING_VERDICT_OK sentence | remedy" of one check, after a change to a daemon that is merely
// not started.
std::string judged(
    const std::string& check,
    const std::function<void(sdk::DaemonInspection&)>& change = [](auto&) {}) {
  sdk::DaemonInspection inspection = not_started();
  change(inspection);
  std::string text;
  const auto response = judge_unreachable_daemon("agboxd is not running", inspection);
  for (const v1::Finding& finding : response.findings()) {
    if (finding.check() != check) continue;
    text += v1::FindingVerdict_Name(finding.verdict()) + " " + finding.sentence() + " | " +
            finding.remedy() + "\n";
  }
  return text;
}

TEST(UnreachableDaemon, ThatCouldStartIsFixedByStartingIt) {
  EXPECT_EQ(judged("daemon"),
            "FINDING_VERDICT_BROKEN agboxd is not running | systemctl --user start agboxd, or run: "
            "/usr/bin/agboxd\n");
  for (const char* check : {"capability", "store", "configuration", "lock", "engine"}) {
    EXPECT_THAT(judged(check), HasSubstr("FINDING_VERDICT_OK ")) << check;
  }
  EXPECT_THAT(judged("engine"), HasSubstr("Docker/28.5.2 (linux) (API 1.51) is reachable at "
                                          "/var/run/docker.sock"));
}

TEST(UnreachableDaemon, PathsThatTheEnvironmentDoesNotDetermineAreNamed) {
  const auto lost = [](auto& inspection) {
    inspection.runtime_problem = "no runtime directory";
    inspection.lock = "";
    inspection.store = "";
    inspection.store_problem = "HOME is not set";
    inspection.config_file = "";
    inspection.config_problem = "HOME is not set";
  };
  EXPECT_THAT(judged("daemon", lost), HasSubstr("FINDING_VERDICT_BROKEN no runtime directory | "
                                                "export XDG_RUNTIME_DIR="));
  EXPECT_THAT(judged("store", lost), HasSubstr("FINDING_VERDICT_BROKEN the path of agboxd's store "
                                               "is not known: HOME is not set | export HOME"));
  EXPECT_THAT(judged("configuration", lost),
              HasSubstr("FINDING_VERDICT_BROKEN the path of config.toml is not known: HOME is not "
                        "set | export HOME"));
  EXPECT_EQ(judged("lock", lost), "");
}

TEST(UnreachableDaemon, ThatHangsIsNamedByItsProcess) {
  const auto hangs = [](auto& inspection) { inspection.lock_holder = 42; };
  EXPECT_THAT(judged("daemon", hangs),
              HasSubstr("process 42 is an agboxd that starts, ends or hangs"));
  EXPECT_THAT(judged("daemon", hangs), HasSubstr("end it with: kill 42"));
  EXPECT_EQ(judged("lock", hangs), "");
}

TEST(UnreachableDaemon, ThatCannotStartIsExplained) {
  EXPECT_THAT(judged("capability", [](auto& seen) { seen.may_change_firewall = false; }),
              HasSubstr("BROKEN /usr/bin/agboxd refuses to start: it may not change the firewall "
                        "(CAP_NET_ADMIN) | sudo setcap cap_net_admin+ep /usr/bin/agboxd"));
  EXPECT_THAT(judged("capability", [](auto& seen) { seen.program.clear(); }),
              HasSubstr("BROKEN there is no agboxd"));
  EXPECT_THAT(judged("store", [](auto& seen) { seen.store_problem = "/data: Read-only"; }),
              HasSubstr("BROKEN agboxd could not write its store /data/ids.db: /data: Read-only"));
  EXPECT_THAT(judged("configuration", [](auto& seen) { seen.has_config_file = true; }),
              HasSubstr("/config/config.toml is read at the start"));
}

TEST(UnreachableDaemon, DistinguishesWhyTheEngineIsUnreachable) {
  EXPECT_THAT(judged("engine", [](auto& seen) { seen.engine.problem = "No such file"; }),
              HasSubstr("BROKEN no engine is reachable at /var/run/docker.sock: No such file | "
                        "sudo systemctl start docker"));
  EXPECT_THAT(judged("engine",
                     [](auto& seen) {
                       seen.engine.problem = "Permission denied";
                       seen.engine.is_denied = true;
                     }),
              HasSubstr("| sudo usermod -aG docker $USER"));
  EXPECT_THAT(
      judged("engine", [](auto& seen) { seen.engine = {.problem = "DOCKER_HOST is tcp://x"}; }),
      HasSubstr("BROKEN DOCKER_HOST is tcp://x | unset DOCKER_HOST"));
}

}  // namespace
}  // namespace agbox::cli
