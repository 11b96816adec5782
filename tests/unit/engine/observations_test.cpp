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
  EXPECT_THAT(network->container_ids, ElementsAre("c1"));
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

TEST(ParseRfc3339, ReadsWhatEnginesWrite) {
  const WallTime base = WallTime(sys_days(2026y / 11 / 15) + 10h + 44min + 24s);
  EXPECT_EQ(parse_rfc3339("2026-11-15T10:44:24Z"), base);
  EXPECT_EQ(parse_rfc3339("2026-11-15T10:44:24.158054801Z"), base + 158'054'801ns);
  EXPECT_EQ(parse_rfc3339("2026-11-15T10:44:24.1580548019Z"), base + 158'054'801ns);
  EXPECT_EQ(parse_rfc3339("2026-11-15T12:44:24.5+02:00"), base + 500ms);
  EXPECT_EQ(parse_rfc3339("2026-11-15T05:14:24-05:30"), base);
  for (const std::string_view bad :
       {"", "2026", "2026-11-15", "2026-13-15T10:44:24Z", "2026-02-30T10:44:24Z",
        "2026-11-15T25:44:24Z", "2026-11-15T10:44:24", "2026-11-15T10:44:24.Z",
        "2026-11-15T10:44:24+0200", "9999-11-15T10:44:24Z", "2026-11-15T10:44:24Zx"}) {
    EXPECT_EQ(parse_rfc3339(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace agbox
