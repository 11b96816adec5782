// SPDX-License-Identifier: Apache-2.0
// FakeDocker itself: fast enough for whole populations of sandboxes, and usable from a thread
// beside the test. That it behaves like an engine is the contract test's affair.
#include "support/fake_docker/fake_docker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/docker/api/engine_client.h"
#include "support/test_loop.h"

namespace agbox {
namespace {

using testing::IsEmpty;

EngineAwaitable<> live(EngineClient& client, int number) {
  const ObjectOwner owner{.instance = "i1", .sandbox_id = "s" + std::to_string(number)};
  NetworkSpec network{.name = "agbox-net-" + owner.sandbox_id};
  AGBOX_CO_TRY(made, co_await client.ensure_network(owner, network));
  ContainerSpec spec{.name = "agbox-primary-" + owner.sandbox_id, .image = "busybox"};
  spec.network = network.name;
  AGBOX_CO_TRY(id, co_await client.ensure_container(owner, spec));
  EngineResult<> started = co_await client.start_container(id);
  if (!started) co_return started;
  AGBOX_CO_TRY(seen, co_await client.inspect_container(id));
  EXPECT_TRUE(seen.is_up());
  EngineResult<> removed = co_await client.remove_owned_container(owner, id);
  if (!removed) co_return removed;
  co_return co_await client.remove_network(made.id);
}

void live_many(TestLoop& loop, EngineClient& client, int lives) {
  for (int i = 0; i < lives; ++i) {
    const EngineResult<> lived = loop.run(live(client, i));
    ASSERT_TRUE(lived) << lived.error().message();
  }
}

TEST(FakeDockerTest, ManyLivesLeaveNothingBehind) {
  TestLoop loop;
  FakeDocker docker(loop.io());
  docker.engine().add_image("busybox");
  EngineClient client(loop.executor(), {.socket_path = docker.socket_path()});
  ASSERT_NO_FATAL_FAILURE(live_many(loop, client, 1000));
  EXPECT_THAT(docker.container_names(), IsEmpty());
  EXPECT_THAT(docker.network_names(), IsEmpty());
  EXPECT_EQ(docker.open_connections(), 1);
  EXPECT_EQ(docker.calls("POST /containers/*/start"), 1000);
}

TEST(FakeDockerTest, LivesOnAThreadOfItsOwn) {
  FakeDocker docker;
  docker.with_engine([](fake::Engine& engine) { engine.add_image("busybox"); });
  TestLoop loop;
  EngineClient client(loop.executor(), {.socket_path = docker.socket_path()});
  ASSERT_NO_FATAL_FAILURE(live_many(loop, client, 20));
  docker.reply("GET /_ping", 500, R"({"message":"ill"})");
  EXPECT_FALSE(loop.run(client.ping()));
  docker.clear_faults();
  EXPECT_TRUE(loop.run(client.ping()));
  docker.stop_listening();
  EXPECT_FALSE(loop.run(client.ping()));
  docker.listen();
  EXPECT_TRUE(loop.run(client.ping()));
  EXPECT_EQ(docker.calls("POST /containers/create"), 20);
}

TEST(FakeDockerTest, FaultsAreForTheCallsTheyName) {
  EXPECT_TRUE(fake::matches_glob("POST /containers/*/start", "POST /containers/abc/start"));
  EXPECT_TRUE(fake::matches_glob("*", ""));
  EXPECT_TRUE(fake::matches_glob("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(fake::matches_glob("POST /containers/*/start", "POST /containers/abc/stop"));
  EXPECT_FALSE(fake::matches_glob("a*b", "a-b-c"));
  EXPECT_FALSE(fake::matches_glob("", "a"));
}

}  // namespace
}  // namespace agbox
