// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/observations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/docker/api/json_reader.h"

namespace agbox {
namespace {

using namespace std::chrono;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr std::string_view kContainer = R"({
  "Id": "f8112d", "Name": "/agbox-primary-s1", "RestartCount": 0,
  "State": {"Status": "running", "Running": true, "Paused": false, "Restarting": true,
            "OOMKilled": true, "Dead": false, "ExitCode": 3,
            "StartedAt": "2026-01-02T03:04:06Z"},
  "Config": {"Image": "busybox", "Labels": {"k": "v"}},
  "NetworkSettings": {"Networks": {"net": {"NetworkID": "n1", "IPAddress": "10.0.0.2"}}}
})";

TEST(ReadContainer, GivesAllThatDecisionsNeed) {
  const auto seen = read_container(kContainer);
  ASSERT_TRUE(seen) << seen.error().message();
  EXPECT_EQ(seen->id, "f8112d");
  EXPECT_EQ(seen->name, "agbox-primary-s1");
  EXPECT_THAT(seen->labels, ElementsAre(Pair("k", "v")));
  EXPECT_TRUE(seen->is_running);
  EXPECT_TRUE(seen->was_oom_killed);
  EXPECT_EQ(seen->exit_code, 3);
  EXPECT_EQ(seen->started_at, WallTime(sys_days(2026y / 1 / 2) + 3h + 4min + 6s));
  EXPECT_THAT(seen->networks, ElementsAre(Pair("net", "10.0.0.2")));
}

TEST(ReadContainer, GivesHowItsHealthIsCheckedAndWhatCameOfIt) {
  const auto seen = read_container(R"({"Id": "a",
    "State": {"Status": "running", "Health": {"Status": "unhealthy", "Log": [
      {"ExitCode": 0, "Output": "fine"}, {"ExitCode": 1, "Output": "no\u001b\nanswer\n"}]}},
    "Config": {"Healthcheck": {"Test": ["CMD-SHELL", "x"], "Interval": 5},
               "Shell": ["/bin/bash", "-c"]}})");
  ASSERT_TRUE(seen) << seen.error().message();
  EXPECT_EQ(seen->health, "unhealthy");
  EXPECT_EQ(seen->probe_output, "no\\x1b\\nanswer");
  EXPECT_THAT(seen->health_test, ElementsAre("CMD-SHELL", "x"));
  EXPECT_THAT(seen->shell, ElementsAre("/bin/bash", "-c"));
  const auto none = read_container(R"({"Id": "a", "State": {"Status": "running", "Health": null},
    "Config": {"Healthcheck": null, "Shell": null}})");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->health, "");
  EXPECT_TRUE(none->health_test.empty());
}

TEST(ReadExec, HasAnExitCodeOnlyAtItsEnd) {
  EXPECT_EQ(read_exec(R"({"ID":"a","Running":true,"ExitCode":null})")->exit_code, std::nullopt);
  EXPECT_TRUE(read_exec(R"({"ID":"a","Running":true})")->is_running);
  EXPECT_EQ(read_exec(R"({"ID":"a","Running":false,"ExitCode":0})")->exit_code, 0);
  EXPECT_EQ(read_exec(R"({"ID":"a","ExitCode":137})")->exit_code, 137);
  EXPECT_FALSE(read_exec(R"({"ID":"a","ExitCode":"x"})").has_value());
  EXPECT_FALSE(read_exec("{}").has_value());
}

TEST(ReadContainer, TheYearOneMeansNever) {
  const auto seen = read_container(
      R"({"Id":"a","State":{"Status":"created","StartedAt":"0001-01-01T00:00:00Z"}})");
  ASSERT_TRUE(seen);
  EXPECT_FALSE(seen->started_at);
}

// The engine says Running while a crashed container waits for its restart.
TEST(ReadContainer, AContainerInRestartBackOffIsNotUp) {
  EXPECT_FALSE(read_container(kContainer)->is_up());
}

TEST(ReadContainer, WhatCannotBeReadIsGarbledAndNamed) {
  const auto words = [](std::string_view body) {
    const auto seen = read_container(body);
    EXPECT_FALSE(seen) << body;
    if (seen) return std::string();
    EXPECT_EQ(seen.error().kind(), EngineErrorKind::Garbled);
    return seen.error().message();
  };
  EXPECT_THAT(words(""), HasSubstr("not JSON"));
  EXPECT_THAT(words("{"), HasSubstr("not JSON"));
  EXPECT_THAT(words("<html>"), HasSubstr("not JSON"));
  EXPECT_THAT(words("{} {}"), HasSubstr("not JSON"));
  EXPECT_THAT(words("{\"Id\":\"\xff\"}"), HasSubstr("not JSON"));
  EXPECT_THAT(words("[]"), HasSubstr("the whole is not an object"));
  EXPECT_THAT(words("null"), HasSubstr("the whole is not an object"));
  EXPECT_THAT(words("{}"), HasSubstr("Id is not there"));
  EXPECT_THAT(words(R"({"Id":"a"})"), HasSubstr("State.Status is not there"));
  EXPECT_THAT(words(R"({"Id":1})"), HasSubstr("Id is not a string"));
  EXPECT_THAT(words(R"({"Id":"a","State":{"Status":"x","Running":"yes"}})"),
              HasSubstr("State.Running is not a boolean"));
  EXPECT_THAT(words(R"({"Id":"a","State":{"Status":"x","ExitCode":1e300}})"),
              HasSubstr("State.ExitCode is not a whole number"));
  EXPECT_THAT(words(R"({"Id":"a","State":{"Status":"x","StartedAt":"soon"}})"),
              HasSubstr("State.StartedAt is not a time"));
  EXPECT_THAT(words(std::string(100, '[') + std::string(100, ']')), HasSubstr("not JSON"));
}

TEST(ReadLists, RowsComeInTheEnginesOrder) {
  const auto containers = read_container_list(
      R"([{"Id":"b","Names":["/two","/one/two"],"State":"exited","Labels":{"k":"v"}},
          {"Id":"a","Names":null,"Labels":null}])");
  ASSERT_TRUE(containers);
  ASSERT_EQ(containers->size(), 2U);
  EXPECT_EQ(containers->at(0).name, "two");
  EXPECT_EQ(containers->at(0).status, "exited");
  EXPECT_EQ(containers->at(1).id, "a");
  EXPECT_FALSE(read_container_list("{}"));
  EXPECT_FALSE(read_network_list(R"([{"Name":"without an id"}])"));
}

TEST(ReadNetwork, GivesBridgeSubnetAndMembers) {
  const auto network = read_network(R"({
    "Id": "n1", "Name": "net", "IPAM": {"Config": [{"Subnet": "10.0.0.0/28"}]},
    "Options": {"com.docker.network.bridge.name": "agbx1"}, "Labels": {"k": "v"},
    "Containers": {"c1": {"Name": "x"}}})");
  ASSERT_TRUE(network);
  EXPECT_EQ(network->bridge_name, "agbx1");
  EXPECT_THAT(network->subnets, ElementsAre("10.0.0.0/28"));
  EXPECT_THAT(network->members, ElementsAre(Pair("c1", "x")));
}

TEST(ReadImage, GivesTheConfiguration) {
  const auto image = read_image(R"({
    "Id": "sha256:aa",
    "Config": {"User": "1234", "Entrypoint": ["/e"], "Volumes": {"/data": {}}, "Labels": null}})");
  ASSERT_TRUE(image) << image.error().message();
  EXPECT_EQ(image->user, "1234");
  EXPECT_THAT(image->entrypoint, ElementsAre("/e"));
  EXPECT_THAT(image->volumes, ElementsAre("/data"));
}

TEST(ReadEvent, GivesTheHint) {
  const auto event = read_event(
      R"({"Type":"container","Action":"die","Actor":{"ID":"c1","Attributes":{"exitCode":"3"}}})");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->action, "die");
  EXPECT_EQ(event->object_id, "c1");
  EXPECT_THAT(event->attributes, ElementsAre(Pair("exitCode", "3")));
}

TEST(ReadUsage, OfCgroupV1) {
  const auto usage = read_usage(R"({
    "read": "2026-11-18T14:00:00.5Z", "pids_stats": {"current": 3, "limit": 18446744073709551615},
    "networks": {"eth0": {"rx_bytes": 10, "tx_bytes": 20}, "eth1": {"rx_bytes": 1, "tx_bytes": 2}},
    "blkio_stats": {"io_service_bytes_recursive": [
      {"major": 8, "minor": 0, "op": "Read", "value": 100},
      {"major": 8, "minor": 0, "op": "Write", "value": 200},
      {"major": 8, "minor": 16, "op": "Read", "value": 1},
      {"major": 8, "minor": 0, "op": "Total", "value": 300}]},
    "cpu_stats": {"cpu_usage": {"total_usage": 30, "usage_in_usermode": 20,
                                "usage_in_kernelmode": 10}},
    "memory_stats": {"usage": 1000, "max_usage": 2000, "limit": 9223372036854771712,
                     "stats": {"total_inactive_file": 300, "inactive_file": 7}}
  })");
  ASSERT_TRUE(usage) << usage.error().message();
  EXPECT_EQ(*usage, (ContainerUsage{.is_running = true,
                                    .cpu_time = 30ns,
                                    .user_cpu = 20ns,
                                    .system_cpu = 10ns,
                                    .memory_bytes = 700,
                                    .memory_limit_bytes = 9223372036854771712U,
                                    .memory_peak_bytes = 2000,
                                    .pids = 3,
                                    .network_rx_bytes = 11,
                                    .network_tx_bytes = 22,
                                    .block_read_bytes = 101,
                                    .block_write_bytes = 200}));
}

TEST(ReadUsage, OfCgroupV2) {
  const auto usage = read_usage(R"({
    "read": "2026-11-18T14:00:00Z", "pids_stats": {"current": 1}, "networks": null,
    "blkio_stats": {"io_service_bytes_recursive": [{"op": "read", "value": 1},
                                                   {"op": "write", "value": 2}]},
    "memory_stats": {"usage": 100, "limit": 5, "stats": {"inactive_file": 300}}
  })");
  ASSERT_TRUE(usage) << usage.error().message();
  EXPECT_EQ(usage->memory_bytes, 0U) << "never less than nothing";
  EXPECT_EQ(usage->memory_peak_bytes, std::nullopt);
  EXPECT_EQ(usage->block_read_bytes, 1U);
  EXPECT_EQ(usage->block_write_bytes, 2U);
}

TEST(ReadUsage, OfOneThatDoesNotRun) {
  EXPECT_EQ(read_usage(R"({"read": "0001-01-01T00:00:00Z", "pids_stats": {}})").value(),
            ContainerUsage());
  EXPECT_EQ(read_usage(R"({"read": 7})").error().kind(), EngineErrorKind::Garbled);
}

}  // namespace
}  // namespace agbox
