// SPDX-License-Identifier: Apache-2.0
// A cancellation is heard wherever it arrives: during an operation, and between two.
#include "async/cancellation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/docker/api/event_watch.h"
#include "engine/docker/images/image_pulls.h"
#include "support/fake_docker/fake_docker.h"
#include "support/test_loop.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

// More than the longest of these takes until it hangs.
constexpr int kSteps = 120;

class CancellationTest : public testing::Test {
 protected:
  CancellationTest() {
    set_log_level(LogLevel::Error);
    docker_.engine().registry["docker.io/library/big:latest"] = {
        .lines = {R"({"status":"Pulling from library/big","id":"latest"})"}};
  }
  ~CancellationTest() override { set_log_level(LogLevel::Info); }

  TestLoop loop_;
  FakeDocker docker_{loop_.io()};
  EngineOptions options_{.socket_path = docker_.socket_path()};
};

TEST_F(CancellationTest, OfACallIsHeardAtEveryStep) {
  docker_.hang("POST /containers/c1/start");
  for (int steps = 0; steps < kSteps; ++steps) {
    EngineClient client(loop_.executor(), options_);
    auto call = loop_.spawn(client.start_container("c1"));
    loop_.run_steps(steps);
    call.cancel();
    loop_.run_until([&] { return call.is_done(); });
    ASSERT_EQ(call.result().error().kind(), EngineErrorKind::Cancelled) << "after step " << steps;
  }
  loop_.run_until([&] { return docker_.open_connections() == 0; });
}

TEST_F(CancellationTest, OfManyAtOnceIsHeardAtEveryStep) {
  docker_.hang("GET /_ping");
  for (int steps = 0; steps < kSteps; ++steps) {
    EngineClient client(loop_.executor(), options_);
    auto first = loop_.spawn(client.ping());
    auto second = loop_.spawn(client.ping());
    loop_.run_steps(steps);
    first.cancel();
    loop_.run_steps(1);
    second.cancel();
    loop_.run_until([&] { return first.is_done() && second.is_done(); });
    ASSERT_EQ(first.result().error().kind(), EngineErrorKind::Cancelled) << "after step " << steps;
    ASSERT_EQ(second.result().error().kind(), EngineErrorKind::Cancelled) << "after step " << steps;
  }
}

TEST_F(CancellationTest, OfAPullIsHeardAtEveryStep) {
  docker_.hang("PULL docker.io/library/big:latest 0");
  const RegistryAuth nobody{Environment{}};
  for (int steps = 0; steps < kSteps; ++steps) {
    EngineClient client(loop_.executor(), options_);
    ImagePulls pulls(client, nobody, Logger());
    auto image = loop_.spawn(pulls.ensure_image("big"));
    loop_.run_steps(steps);
    image.cancel();
    loop_.run_until([&] { return image.is_done(); });
    ASSERT_EQ(image.result().error().kind(), EngineErrorKind::Cancelled) << "after step " << steps;
    loop_.run(pulls.stop());

    ImagePulls stopped(client, nobody, Logger());
    auto waiting = loop_.spawn(stopped.ensure_image("big"));
    loop_.run_steps(steps);
    loop_.run(stopped.stop());
    waiting.cancel();  // where the stop came before the pull
    loop_.run_until([&] { return waiting.is_done(); });
    ASSERT_EQ(waiting.result().error().kind(), EngineErrorKind::Cancelled);
  }
}

TEST_F(CancellationTest, OfAWatchIsHeardAtEveryStep) {
  for (int steps = 0; steps < kSteps; ++steps) {
    EngineClient client(loop_.executor(), options_);
    const EventConsumer consumer{.reconcile_due = [] {}, .event = [](const EngineEvent&) {}};
    auto watch = loop_.spawn(watch_events(client, consumer, Logger(), {}));
    loop_.run_steps(steps);
    watch.cancel();
    loop_.run_until([&] { return watch.is_done(); });
  }
  loop_.run_until([&] { return docker_.event_streams() == 0; });
}

TEST_F(CancellationTest, OfRemovalsSideBySideIsHeardAtEveryStep) {
  docker_.engine().add_image("busybox");
  const ObjectOwner owner{.instance = "i1", .sandbox_id = "s1"};
  EngineClient maker(loop_.executor(), options_);
  for (const std::string name : {"a", "b"}) {
    ContainerSpec spec{.name = name, .image = "busybox"};
    ASSERT_TRUE(loop_.run(maker.ensure_container(owner, spec)));
  }
  docker_.hang("DELETE *");
  for (int steps = 0; steps < kSteps; ++steps) {
    EngineClient client(loop_.executor(), options_);
    auto removal = loop_.spawn(client.remove_containers_of(owner));
    loop_.run_steps(steps);
    removal.cancel();
    loop_.run_until([&] { return removal.is_done(); });
    ASSERT_EQ(removal.result().error().kind(), EngineErrorKind::Cancelled) << "step " << steps;
  }
}

}  // namespace
}  // namespace agbox
