// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/event_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_docker/fake_docker.h"
#include "support/test_loop.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class EventWatchTest : public testing::Test {
 protected:
  EventWatchTest() {
    set_log_level(LogLevel::Error);
    docker_.engine().add_image("busybox");
  }
  ~EventWatchTest() override {
    watch_->cancel();
    loop_.run_until([&] { return watch_->is_done(); });
    loop_.run_until([&] { return docker_.event_streams() == 0; });
    set_log_level(LogLevel::Info);
  }

  void watch(std::chrono::milliseconds first_wait = 100ms) {
    EventConsumer consumer{
        .reconcile_due = [this] { ++reconciles_; },
        .event = [this](const EngineEvent& event) { events_.push_back(event); },
        .lost = [this](const EngineError& error) { losses_.push_back(error.message()); }};
    EventWatchOptions options{.filter = {.labels = {{instance_label(), "i1"}},
                                         .types = {"container"},
                                         .actions = {"die", "oom"}},
                              .first_wait = first_wait};
    // Waits are recorded, not waited.
    options.pause = [this](std::chrono::milliseconds wait) -> boost::asio::awaitable<void> {
      waits_.push_back(wait);
      if (on_wait_) on_wait_();
      co_return;
    };
    watch_ = loop_.spawn(watch_events(client_, consumer, Logger(), options));
  }

  void die(const std::string& name, const std::string& instance) {
    ContainerSpec spec{.name = name, .image = "busybox", .labels = {{instance_label(), instance}}};
    const auto id = loop_.run(client_.create_container(spec));
    ASSERT_TRUE(id);
    ASSERT_TRUE(loop_.run(client_.start_container(*id)));
    docker_.engine().end_container(*docker_.engine().find_container(*id), 1);
  }

  TestLoop loop_;
  FakeDocker docker_{loop_.io()};
  EngineClient client_{loop_.executor(), {.socket_path = docker_.socket_path()}};
  int reconciles_ = 0;
  std::vector<EngineEvent> events_;
  std::vector<std::string> losses_;
  std::vector<std::chrono::milliseconds> waits_;
  std::function<void()> on_wait_;
  std::optional<TestTask<bool>> watch_;
};

TEST_F(EventWatchTest, TellsOfOurContainersAlone) {
  watch();
  loop_.run_until([&] { return docker_.event_streams() == 1 && reconciles_ == 1; });
  die("theirs", "i2");
  die("ours", "i1");
  loop_.run_until([&] { return !events_.empty(); });
  EXPECT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].action, "die");
  EXPECT_EQ(events_[0].attributes.at("name"), "ours");
}

TEST_F(EventWatchTest, AfterALossItSubscribesAgainAndAFullLookIsDue) {
  watch();
  for (int i = 1; i <= 3; ++i) {
    loop_.run_until([&] { return docker_.event_streams() == 1 && reconciles_ == i; });
    docker_.drop_event_streams();
    loop_.run_until([&] { return reconciles_ == i + 1; });
  }
  EXPECT_EQ(losses_.size(), 3U);
  EXPECT_EQ(docker_.calls("GET /events"), 4);
  loop_.run_until([&] { return docker_.event_streams() == 1; });
  EXPECT_LE(docker_.open_connections(), 3) << "lost streams leave nothing behind";
}

TEST_F(EventWatchTest, WhileTheEngineIsAwayTheWaitsGrow) {
  on_wait_ = [this] {
    if (waits_.size() == 12) docker_.listen();
  };
  docker_.stop_listening();
  watch();
  loop_.run_until([&] { return reconciles_ == 1; });
  EXPECT_THAT(waits_, ElementsAre(100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 12800ms,
                                  25600ms, 30s, 30s, 30s));
  EXPECT_THAT(losses_.front(), HasSubstr("cannot reach the container engine"));
}

TEST_F(EventWatchTest, AnEngineThatAcceptsAndDropsIsNoSuccess) {
  docker_.garble("GET /events", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 5);
  watch(1h);
  loop_.run_until([&] { return waits_.size() == 5 && docker_.event_streams() == 1; });
  EXPECT_THAT(waits_, ElementsAre(1h, 30s, 30s, 30s, 30s));
}

TEST_F(EventWatchTest, AStreamThatLastedBeginsTheWaitsAnew) {
  docker_.drop("GET /events", 4);
  watch(1ms);
  loop_.run_until([&] { return reconciles_ == 1; });
  EXPECT_THAT(waits_, ElementsAre(1ms, 2ms, 4ms, 8ms));
  // Lives longer than the 8 ms before it: a timer of the loop, not a sleep.
  boost::asio::steady_timer timer(loop_.io(), 30ms);
  bool has_lasted = false;
  timer.async_wait([&](const boost::system::error_code&) { has_lasted = true; });
  loop_.run_until([&] { return has_lasted; });
  docker_.drop_event_streams();
  loop_.run_until([&] { return waits_.size() == 5; });
  EXPECT_EQ(waits_.back(), 1ms);
}

TEST_F(EventWatchTest, AfterALineThatCannotBeReadItBeginsAgain) {
  watch();
  loop_.run_until([&] { return docker_.event_streams() == 1; });
  docker_.send_raw_event("{ not json");
  loop_.run_until([&] { return reconciles_ == 2; });
  EXPECT_THAT(losses_, ElementsAre(HasSubstr("not JSON")));
}

TEST_F(EventWatchTest, EndsWhenItIsCancelledWhereverItWaits) {
  docker_.hang("GET /events");
  watch();
  loop_.run_until([&] { return docker_.held("GET /events") == 1; });
  watch_->cancel();
  loop_.run_until([&] { return watch_->is_done(); });
  loop_.run_until([&] { return docker_.abandoned("GET /events") == 1; });
}

}  // namespace
}  // namespace agbox
