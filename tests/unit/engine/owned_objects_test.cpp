// SPDX-License-Identifier: Apache-2.0
// Making and removing what is ours when answers are lost and others are in the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/docker/api/engine_client.h"
#include "support/fake_docker/fake_docker.h"
#include "support/test_loop.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OwnedObjectsTest : public testing::Test {
 protected:
  OwnedObjectsTest() { docker_.engine().add_image("busybox"); }

  TestLoop loop_;
  FakeDocker docker_{loop_.io()};
  EngineClient client_{loop_.executor(), {.socket_path = docker_.socket_path()}};
  // One that does not wait for minutes.
  EngineClient impatient_{
      loop_.executor(),
      {.socket_path = docker_.socket_path(), .patience = {.call = 1500ms, .removal = 2000ms}}};
  ObjectOwner owner_{.instance = "i1", .sandbox_id = "s1"};
  ContainerSpec container_{.name = "agbox-primary-s1", .image = "busybox"};
  NetworkSpec network_{.name = "agbox-net-s1", .bridge_name = "agbx1", .subnet = "10.9.0.0/28"};
};

TEST_F(OwnedObjectsTest, ALostAnswerOfACreateIsMadeGoodByAskingAgain) {
  docker_.lose_answer("POST /containers/create", 1);
  docker_.lose_answer("POST /networks/create", 1);
  EXPECT_TRUE(loop_.run(client_.ensure_container(owner_, container_)).error().is_open());
  EXPECT_TRUE(loop_.run(client_.ensure_network(owner_, network_)).error().is_open());
  const auto container = loop_.run(client_.ensure_container(owner_, container_));
  ASSERT_TRUE(container);
  EXPECT_EQ(*container, docker_.engine().find_container(container_.name)->id);
  ASSERT_TRUE(loop_.run(client_.ensure_network(owner_, network_)));
  EXPECT_EQ(docker_.engine().networks.size(), 1U);
  EXPECT_EQ(docker_.engine().containers.size(), 1U);
}

TEST_F(OwnedObjectsTest, ALostAnswerOfARemovalIsMadeGoodByAskingAgain) {
  ASSERT_TRUE(loop_.run(client_.ensure_container(owner_, container_)));
  ASSERT_TRUE(loop_.run(client_.ensure_network(owner_, network_)));
  docker_.lose_answer("DELETE *", 2);
  EXPECT_TRUE(loop_.run(client_.remove_containers_of(owner_)).error().is_open());
  EXPECT_TRUE(loop_.run(client_.remove_networks_of(owner_)).error().is_open());
  EXPECT_TRUE(loop_.run(client_.remove_containers_of(owner_)));
  EXPECT_TRUE(loop_.run(client_.remove_networks_of(owner_)));
  EXPECT_THAT(docker_.container_names(), IsEmpty());
  EXPECT_THAT(docker_.network_names(), IsEmpty());
}

// Whoever makes a mount namespace at that moment takes the container's mounts along for a while.
TEST_F(OwnedObjectsTest, FilesThatAreBusyForAMomentAreRemovedALittleLater) {
  ASSERT_TRUE(loop_.run(client_.ensure_container(owner_, container_)));
  const std::string busy =
      R"({"message":"driver \"overlay2\" failed to remove root filesystem: unlinkat /merged: device or resource busy"})";
  docker_.reply("DELETE *", 500, busy, 2);
  EXPECT_TRUE(loop_.run(client_.remove_containers_of(owner_)));
  EXPECT_THAT(docker_.container_names(), IsEmpty());
}

TEST_F(OwnedObjectsTest, FilesThatStayBusyAreAnError) {
  ASSERT_TRUE(loop_.run(client_.ensure_container(owner_, container_)));
  docker_.reply("DELETE *", 500, R"({"message":"unlinkat /merged: device or resource busy"})");
  const auto removed = loop_.run(client_.remove_containers_of(owner_));
  ASSERT_FALSE(removed);
  EXPECT_THAT(removed.error().message(), HasSubstr("device or resource busy"));
}

TEST_F(OwnedObjectsTest, WhatIsThereOfOursIsFoundAndNothingIsMade) {
  EXPECT_FALSE(loop_.run(client_.find_network_of(owner_, network_.name)).value().has_value());
  EXPECT_FALSE(loop_.run(client_.find_container_of(owner_, "gone")).value().has_value());
  EXPECT_FALSE(loop_.run(client_.find_container_of(owner_, "")).value().has_value());
  const auto id = loop_.run(client_.ensure_container(owner_, container_));
  ASSERT_TRUE(loop_.run(client_.ensure_network(owner_, network_)));
  EXPECT_EQ(loop_.run(client_.find_network_of(owner_, network_.name)).value()->bridge_name,
            "agbx1");
  EXPECT_EQ(loop_.run(client_.find_container_of(owner_, *id)).value()->id, *id);
  const ObjectOwner other{.instance = "i2", .sandbox_id = "s1"};
  EXPECT_FALSE(loop_.run(client_.find_network_of(other, network_.name)).value().has_value());
  EXPECT_EQ(loop_.run(client_.find_container_of(other, *id)).error().kind(),
            EngineErrorKind::Conflict);
}

TEST_F(OwnedObjectsTest, AStopOfWhatIsGoneOrDoesNotRunIsDone) {
  const auto id = loop_.run(client_.ensure_container(owner_, container_));
  EXPECT_TRUE(loop_.run(client_.stop_if_there(*id, std::chrono::seconds(5))));
  EXPECT_TRUE(loop_.run(client_.stop_if_there("gone", std::chrono::seconds(5))));
  EXPECT_TRUE(loop_.run(client_.stop_if_there("", std::chrono::seconds(5))));
  docker_.reply("POST /containers/*/stop", 500, R"({"message":"device is busy"})");
  EXPECT_THAT(loop_.run(client_.stop_if_there(*id, std::chrono::seconds(5))).error().message(),
              HasSubstr("device is busy"));
}

TEST_F(OwnedObjectsTest, AForeignContainerUnderOurNameIsNeverRemoved) {
  ContainerSpec foreign = container_;
  foreign.labels = {{instance_label(), "i2"}, {sandbox_label(), "s1"}};
  ASSERT_TRUE(loop_.run(client_.create_container(foreign)));
  const auto created = loop_.run(client_.ensure_container(owner_, container_));
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().kind(), EngineErrorKind::Conflict);
  EXPECT_THAT(created.error().message(), HasSubstr("container agbox-primary-s1 exists already"));
  EXPECT_TRUE(loop_.run(client_.remove_containers_of(owner_)));
  EXPECT_EQ(docker_.calls("DELETE *"), 0);
  EXPECT_THAT(docker_.container_names(), ElementsAre("agbox-primary-s1"));
}

// An engine whose filters do not filter (or a hostile one) cannot make us remove other people's.
TEST_F(OwnedObjectsTest, LabelsAreCheckedAgainAfterTheEnginesFilter) {
  docker_.reply("GET /containers/json", 200,
                R"([{"Id":"theirs","Names":["/theirs"],"Labels":{"x":"y"}},
                    {"Id":"old","Names":["/old"],"Labels":null}])");
  docker_.reply("GET /networks", 200, R"([{"Id":"theirs","Name":"bridge","Labels":{}}])");
  EXPECT_TRUE(loop_.run(client_.remove_containers_of(owner_)));
  EXPECT_TRUE(loop_.run(client_.remove_networks_of(owner_)));
  EXPECT_EQ(docker_.calls("DELETE *"), 0);
}

TEST_F(OwnedObjectsTest, NoInstanceOwnsNothing) {
  EXPECT_FALSE(ObjectOwner{.instance = ""}.owns({}));
  EXPECT_FALSE(ObjectOwner{.instance = ""}.owns({{instance_label(), ""}}));
  EXPECT_FALSE(owner_.owns({{instance_label(), "i1"}}));
  EXPECT_TRUE(owner_.owns({{instance_label(), "i1"}, {sandbox_label(), "s1"}}));
  EXPECT_TRUE(ObjectOwner{.instance = "i1"}.owns({{instance_label(), "i1"}}));
}

TEST_F(OwnedObjectsTest, RemovalsGoOnSideBySideAndOneFailureDoesNotStopTheOthers) {
  for (const std::string name : {"a", "b", "c"}) {
    ContainerSpec spec = container_;
    spec.name = name;
    ASSERT_TRUE(loop_.run(client_.ensure_container(owner_, spec)));
  }
  docker_.hold("DELETE /containers/*");
  auto removal = loop_.spawn(client_.remove_containers_of(owner_));
  loop_.run_until([&] { return docker_.held("DELETE *") == 3; });
  docker_.release("DELETE /containers/*");
  docker_.clear_faults();
  loop_.run_until([&] { return removal.is_done(); });
  EXPECT_TRUE(removal.result());

  for (const std::string name : {"a", "b", "c"}) {
    ContainerSpec spec = container_;
    spec.name = name;
    ASSERT_TRUE(loop_.run(client_.ensure_container(owner_, spec)));
  }
  docker_.reply("DELETE /containers/b", 500, R"({"message":"device busy"})");
  const auto second = loop_.run(client_.remove_containers_of(owner_));
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr("device busy"));
  EXPECT_THAT(docker_.container_names(), ElementsAre("b"));
}

// A full disk keeps the engine from forgetting them.
TEST_F(OwnedObjectsTest, EndpointsOfRemovedContainersDoNotKeepTheirNetwork) {
  ASSERT_TRUE(loop_.run(client_.ensure_network(owner_, network_)));
  fake::Network* network = docker_.engine().find_network(network_.name);
  network->stale_endpoints = {"agbox-primary-s1", "agbox-cc-s1-db"};
  EXPECT_TRUE(loop_.run(client_.remove_networks_of(owner_)));
  EXPECT_THAT(docker_.network_names(), IsEmpty());
}

TEST_F(OwnedObjectsTest, AContainerThatSomeoneConnectedKeepsItsNetwork) {
  ASSERT_TRUE(loop_.run(client_.ensure_network(owner_, network_)));
  ContainerSpec other = container_;
  other.name = "other";
  other.network = network_.name;
  const auto id = loop_.run(client_.ensure_container({.instance = "i2"}, other));
  ASSERT_TRUE(id);
  ASSERT_TRUE(loop_.run(client_.start_container(*id)));
  const auto removed = loop_.run(client_.remove_networks_of(owner_));
  ASSERT_FALSE(removed);
  EXPECT_THAT(removed.error().message(), HasSubstr("has active endpoints"));
  EXPECT_EQ(docker_.calls("POST /networks/*"), 1) << "its creation, and no disconnect";
}

TEST_F(OwnedObjectsTest, ARemovalThatIsUnderWayIsWaitedFor) {
  ASSERT_TRUE(loop_.run(client_.ensure_container(owner_, container_)));
  docker_.reply("DELETE /containers/*", 409,
                R"({"message":"removal of container x is already in progress"})", 1);
  auto removal = loop_.spawn(client_.remove_containers_of(owner_));
  loop_.run_until([&] { return docker_.calls("POST /containers/*/wait") == 1; });
  EXPECT_FALSE(removal.is_done());
  ASSERT_TRUE(loop_.run(client_.remove_container(container_.name, {.force = true})));
  loop_.run_until([&] { return removal.is_done(); });
  EXPECT_TRUE(removal.result());
}

TEST_F(OwnedObjectsTest, ARemovalThatHangsIsWaitedForWhileItIsUnderWay) {
  ASSERT_TRUE(loop_.run(client_.ensure_container(owner_, container_)));
  docker_.hang("DELETE /containers/*", 1);
  EXPECT_TRUE(loop_.run(impatient_.remove_containers_of(owner_)));
  EXPECT_EQ(docker_.calls("DELETE /containers/*"), 2);
}

TEST_F(OwnedObjectsTest, ARemovalThatHangsIsNotWaitedForForever) {
  ASSERT_TRUE(loop_.run(client_.ensure_container(owner_, container_)));
  docker_.hang("DELETE /containers/*");
  const auto removed = loop_.run(impatient_.remove_containers_of(owner_));
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().kind(), EngineErrorKind::TimedOut);
  EXPECT_THAT(removed.error().message(), HasSubstr("not removed within 2 s"));
  docker_.clear_faults();
  docker_.reply("DELETE /containers/*", 409,
                R"({"message":"removal of container x is already in progress"})");
  const auto in_progress = loop_.run(impatient_.remove_containers_of(owner_));
  ASSERT_FALSE(in_progress);
  EXPECT_EQ(in_progress.error().kind(), EngineErrorKind::TimedOut);
}

// The kernel takes long to end processes that hold millions of objects.
TEST_F(OwnedObjectsTest, AContainerThatDiesSlowlyIsRemovedOnceItIsDead) {
  const auto id = loop_.run(client_.ensure_container(owner_, container_));
  ASSERT_TRUE(loop_.run(client_.start_container(*id)));
  docker_.reply("DELETE /containers/*", 500,
                R"({"message":"cannot remove container \"/x\": could not kill: tried to kill )"
                R"(container, but did not receive an exit event"})",
                1);
  auto removal = loop_.spawn(client_.remove_containers_of(owner_));
  loop_.run_until([&] { return docker_.calls("POST /containers/*/wait") == 1; });
  loop_.run_until_idle();
  EXPECT_FALSE(removal.is_done());
  docker_.engine().end_container(*docker_.engine().find_container(*id), 137);
  loop_.run_until([&] { return removal.is_done(); });
  EXPECT_TRUE(removal.result());
  EXPECT_THAT(docker_.container_names(), IsEmpty());
}

TEST_F(OwnedObjectsTest, ASubnetThatIsTakenIsTheEnginesConflict) {
  ASSERT_TRUE(loop_.run(
      client_.create_network({.name = "theirs", .bridge_name = "br9", .subnet = network_.subnet})));
  const auto network = loop_.run(client_.ensure_network(owner_, network_));
  ASSERT_FALSE(network);
  EXPECT_EQ(network.error().kind(), EngineErrorKind::Conflict);
  EXPECT_EQ(network.error().http_status(), 403);
  EXPECT_THAT(network.error().message(), HasSubstr("Pool overlaps"));
  EXPECT_EQ(docker_.calls("POST /networks/create"), 2) << "theirs, and ours once";
}

// It may be making the one that it refuses ours for.
TEST_F(OwnedObjectsTest, ANetworkThatIsRefusedForNothingListedIsAskedForAgain) {
  docker_.reply("POST /networks/create", 403,
                R"({"message":"Pool overlaps with other one on this address space"})", 2);
  ASSERT_TRUE(loop_.run(client_.ensure_network(owner_, network_)));
  EXPECT_EQ(docker_.calls("POST /networks/create"), 3);
}

TEST_F(OwnedObjectsTest, AContainerWhoseNameNobodySeenHoldsIsAskedForAgain) {
  docker_.reply("POST /containers/create", 409,
                R"({"message":"Conflict. The container name is already in use by container"})", 2);
  const auto container = loop_.run(client_.ensure_container(owner_, container_));
  ASSERT_TRUE(container);
  EXPECT_EQ(*container, docker_.engine().find_container(container_.name)->id);
  EXPECT_EQ(docker_.calls("POST /containers/create"), 3);
}

TEST_F(OwnedObjectsTest, ANameThatStaysTakenByNobodySeenIsTheEnginesConflict) {
  docker_.reply("POST /containers/create", 409,
                R"({"message":"Conflict. The container name is already in use by container"})");
  const auto container = loop_.run(client_.ensure_container(owner_, container_));
  ASSERT_FALSE(container);
  EXPECT_EQ(container.error().kind(), EngineErrorKind::Conflict);
  EXPECT_THAT(container.error().message(), HasSubstr("The container name is already in use"));
}

TEST_F(OwnedObjectsTest, ACancelledRemovalEndsAllItsParts) {
  for (const std::string name : {"a", "b"}) {
    ContainerSpec spec = container_;
    spec.name = name;
    ASSERT_TRUE(loop_.run(client_.ensure_container(owner_, spec)));
  }
  docker_.hang("DELETE *");
  auto removal = loop_.spawn(client_.remove_containers_of(owner_));
  loop_.run_until([&] { return docker_.held("DELETE *") == 2; });
  removal.cancel();
  loop_.run_until([&] { return removal.is_done(); });
  EXPECT_EQ(removal.result().error().kind(), EngineErrorKind::Cancelled);
  loop_.run_until([&] { return docker_.abandoned("DELETE *") == 2; });
}

}  // namespace
}  // namespace agbox
