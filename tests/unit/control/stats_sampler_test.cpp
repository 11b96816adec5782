// SPDX-License-Identifier: Apache-2.0
// What containers use: measured on request, and shared by all who watch.
#include "control/stats/stats_sampler.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <memory>

#include "model/object_names.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const std::string kStatsCall = "GET /containers/*/stats";

class StatsSamplerTest : public ControlTest {
 protected:
  StatsSamplerTest() {
    engine().add_image("db");
    start();
    wait_swept();
    v1::CreateSpec spec;
    const bool is_valid = google::protobuf::TextFormat::ParseFromString(
        "image: 'busybox' optional_services { name: 'db' image: 'db' }", &spec);
    AGBOX_CHECK(is_valid, "a spec of a test");
    create_ready("box-1", parse_create_spec(std::move(spec)).value());
    run_until([&] { return handle("box-1").companions(0).state() == v1::COMPANION_STATE_READY; });
    set_cpu(primary_container_name("box-1"), 1'500'000'000);
    set_cpu("agbox-cc-box-1-db", 7);
    docker().forget_calls();
  }
  void set_cpu(const std::string& container, std::int64_t nanoseconds) {
    engine().find_container(container)->usage =
        fake::json::object{{"cpu_stats", {{"cpu_usage", {{"total_usage", nanoseconds}}}}},
                           {"pids_stats", {{"current", 2}}}};
  }

  Result<v1::SandboxStats> measure(const std::string& sandbox_id = "box-1") {
    std::optional<Result<v1::SandboxStats>> answer;
    plane().get_stats(sandbox_id,
                      [&](Result<v1::SandboxStats> stats) { answer = std::move(stats); });
    run_until([&] { return answer.has_value(); });
    return *answer;
  }

  struct Watching {
    int responses = 0;
    v1::SandboxStats latest;
    std::optional<Result<>> end;
    std::optional<Task> task;
  };
  std::shared_ptr<Watching> watch(std::chrono::nanoseconds interval,
                                  const std::string& sandbox_id = "box-1") {
    auto watching = std::make_shared<Watching>();
    auto write = [watching](v1::SandboxStats stats) -> asio::awaitable<bool> {
      ++watching->responses;
      watching->latest = std::move(stats);
      co_return true;
    };
    watching->task = plane().watch_stats(sandbox_id, interval, write,
                                         [watching](const Result<>& end) { watching->end = end; });
    return watching;
  }
};

TEST_F(StatsSamplerTest, OfEveryContainer) {
  const v1::SandboxStats stats = measure().value();
  EXPECT_EQ(stats.sandbox_id(), "box-1");
  EXPECT_GT(stats.time().seconds(), 0);
  ASSERT_EQ(stats.containers_size(), 2);
  EXPECT_EQ(stats.containers(0).name(), "primary");
  EXPECT_TRUE(stats.containers(0).running());
  EXPECT_EQ(stats.containers(0).cpu_time().seconds(), 1);
  EXPECT_EQ(stats.containers(0).cpu_time().nanos(), 500'000'000);
  EXPECT_EQ(stats.containers(0).pids(), 2U);
  EXPECT_FALSE(stats.containers(0).has_memory_peak_bytes());
  EXPECT_EQ(stats.containers(1).name(), "db");
  EXPECT_EQ(stats.containers(1).cpu_time().nanos(), 7);
}

TEST_F(StatsSamplerTest, OfAStoppedSandboxNothingRuns) {
  stop_sandbox("box-1");
  const v1::SandboxStats stats = measure().value();
  ASSERT_EQ(stats.containers_size(), 2);
  EXPECT_FALSE(stats.containers(0).running());
  EXPECT_FALSE(stats.containers(1).running());
}

TEST_F(StatsSamplerTest, RefusalsSayWhy) {
  EXPECT_EQ(measure("nope").error().reason(), reason::kSandboxNotFound);
  const auto unknown = watch(1s, "nope");
  run_until([&] { return unknown->end.has_value(); });
  EXPECT_EQ(unknown->end->error().reason(), reason::kSandboxNotFound);
  ASSERT_TRUE(remove("box-1").has_value());
  wait_for_state("box-1", v1::SANDBOX_STATE_DELETED);
  EXPECT_EQ(measure().error().reason(), reason::kContainerNotFound);
}

TEST_F(StatsSamplerTest, WithoutTheEngineThereAreNone) {
  docker().stop_listening();
  wait_for_loss_of_engine();
  EXPECT_EQ(measure().error().reason(), reason::kEngineUnavailable);
}

TEST_F(StatsSamplerTest, AWatcherGetsOneAtOnceAndThenOnePerInterval) {
  const auto watching = watch(10ms);
  run_until([&] { return watching->responses == 1; });
  set_cpu("agbox-cc-box-1-db", 8);
  run_until([&] { return watching->responses == 4; });
  EXPECT_EQ(watching->latest.containers(1).cpu_time().nanos(), 8);
  ASSERT_TRUE(remove("box-1").has_value());
  run_until([&] { return watching->end.has_value(); });
  EXPECT_TRUE(watching->end->has_value()) << watching->end->error().message();
}

TEST_F(StatsSamplerTest, WatchersShareTheMeasurements) {
  std::vector<std::shared_ptr<Watching>> all;
  for (int i = 0; i < 50; ++i) all.push_back(watch(1h));
  run_until([&] {
    return std::ranges::all_of(all, [](const auto& one) { return one->responses == 1; });
  });
  all.push_back(watch(1h));
  run_until([&] { return all.back()->responses == 1; });
  EXPECT_EQ(docker().calls(kStatsCall), 2) << "once per container";
  // The first one goes: another measures for those who wait.
  docker().forget_calls();
  docker().hold(kStatsCall, 1);
  const auto first = watch(1ns);
  run_until([&] { return docker().held(kStatsCall) == 1; });
  const auto second = watch(1ns);
  run_until_idle();
  EXPECT_EQ(second->responses, 0);
  first->task->cancel();
  run_until([&] { return second->responses > 0; });
}

TEST_F(StatsSamplerTest, NobodyWatchesNobodyMeasures) {
  const auto watching = watch(5ms);
  run_until([&] { return watching->responses == 2; });
  watching->task->cancel();
  run_until([&] { return watching->end.has_value(); });
  docker().forget_calls();
  const auto other = watch(5ms, "nope");
  run_until([&] { return other->end.has_value(); });
  EXPECT_EQ(docker().calls(kStatsCall), 0);
}

TEST_F(StatsSamplerTest, TooManyWatchersAreRefused) {
  std::vector<std::shared_ptr<Watching>> all;
  for (std::size_t i = 0; i < maxima::kStatsWatchers; ++i) all.push_back(watch(1h));
  run_until([&] {
    return std::ranges::all_of(all, [](const auto& one) { return one->responses == 1; });
  });
  const auto refused = watch(1h);
  run_until([&] { return refused->end.has_value(); });
  EXPECT_EQ(refused->end->error().reason(), reason::kResourceExhausted);
  EXPECT_THAT(refused->end->error().message(), HasSubstr("256"));
  EXPECT_TRUE(measure().has_value());
}

}  // namespace
}  // namespace agbox
