// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/companion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace agbox {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

struct Check {
  milliseconds start_period{}, start_interval{}, interval{}, timeout{};
  std::uint32_t retries = 0;
};

google::protobuf::Duration duration(std::chrono::nanoseconds time) {
  google::protobuf::Duration made;
  made.set_seconds(time / 1s);
  made.set_nanos(static_cast<std::int32_t>((time % 1s).count()));
  return made;
}

v1::HealthcheckConfig config(const Check& check) {
  v1::HealthcheckConfig made;
  if (check.start_period > 0ms) *made.mutable_start_period() = duration(check.start_period);
  if (check.start_interval > 0ms) *made.mutable_start_interval() = duration(check.start_interval);
  if (check.interval > 0ms) *made.mutable_interval() = duration(check.interval);
  if (check.timeout > 0ms) *made.mutable_timeout() = duration(check.timeout);
  made.set_retries(check.retries);
  return made;
}

TEST(HealthLimit, IsWhatTheEnginesOwnCheckWouldTakeToFail) {
  const struct {
    Check check;
    milliseconds limit;
  } table[] = {
      // Known to clients.
      {{20s, 11s, 2s, 7s, 2}, 52s},
      {{12s, 0s, 2s, 1s, 2}, 23s},
      {{0s, 0s, 4s, 6s, 0}, 24s},
      {{600s, 0s, 600s, 600s, 9}, 5min},
      // The default of each.
      {{}, 2min},
      {{0s, 0s, 1s, 0s, 1}, 60s},
      {{0s, 0s, 0s, 1s, 1}, 60s},
      // A start interval counts only within a start period.
      {{0s, 50s, 1s, 1s, 1}, 2s},
      {{1s, 50s, 1s, 1s, 1}, 53s},
      {{1s, 0s, 1s, 10s, 1}, 31s},
      {{0s, 0s, 1ms, 1ms, 1}, 2ms},
  };
  for (const auto& [check, limit] : table) {
    EXPECT_EQ(health_limit(config(check)), limit)
        << check.start_period << " " << check.start_interval << " " << check.interval << " "
        << check.timeout << " " << check.retries;
  }
}

TEST(HealthLimit, OfTheLargestNumbersIsFiveMinutes) {
  v1::HealthcheckConfig check;
  check.set_retries(std::numeric_limits<std::uint32_t>::max());
  EXPECT_EQ(health_limit(check), 5min);
  for (auto* part : {check.mutable_interval(), check.mutable_timeout(),
                     check.mutable_start_period(), check.mutable_start_interval()}) {
    part->set_seconds(315'576'000'000);
    part->set_nanos(999'999'999);
  }
  EXPECT_EQ(health_limit(check), 5min);
  EXPECT_GT(probe_timeout(check), 24h);
}

TEST(ProbeTimeout, IsTheChecks) {
  EXPECT_EQ(probe_timeout({}), 30s);
  EXPECT_EQ(probe_timeout(config({.timeout = 1500ms})), 1500ms);
  v1::HealthcheckConfig check;
  *check.mutable_timeout() = duration(1'000'001ns);
  EXPECT_EQ(probe_timeout(check), 2ms) << "not less than was asked for";
}

TEST(ProbePause, GrowsWithTheTimeThatHasPassed) {
  const std::pair<milliseconds, milliseconds> table[] = {
      {0ms, 20ms}, {100ms, 20ms}, {200ms, 20ms}, {300ms, 30ms},
      {1s, 100ms}, {19s, 1900ms}, {20s, 2s},     {5min, 2s},
  };
  for (const auto& [elapsed, pause] : table) EXPECT_EQ(probe_pause(elapsed), pause) << elapsed;
}

TEST(CompanionsOf, AreInTheOrderOfTheSpecWithTheirContainers) {
  SandboxFacts facts;
  facts.sandbox_id = "s1";
  EXPECT_THAT(companions_of(facts), IsEmpty());
  v1::CreateSpec& spec = facts.spec.create_spec;
  (*spec.mutable_labels())["team"] = "a";
  spec.add_companion_containers()->set_name("proxy");
  spec.add_optional_services()->set_name("cache");
  for (const char* name : {"db", "auth"}) spec.add_required_services()->set_name(name);
  spec.add_companion_containers()->set_name("mail");
  facts.created_with.set_engine_id("e1");
  facts.created_with.add_dns("192.0.2.53");
  facts.containers[""].set_container_id("primary");
  facts.containers["cache"].set_container_id("c1");

  const std::vector<CompanionFacts> all = companions_of(facts);
  std::vector<std::pair<std::string, v1::CompanionRole>> order;
  for (const CompanionFacts& each : all) {
    order.emplace_back(each.name(), each.role);
    EXPECT_EQ(each.sandbox_id, "s1");
    EXPECT_EQ(each.engine_id, "e1");
    EXPECT_THAT(each.dns, ElementsAre("192.0.2.53"));
    EXPECT_THAT(each.sandbox_labels, ElementsAre(Pair("team", "a")));
    EXPECT_EQ(each.container.container_id(), each.name() == "cache" ? "c1" : "");
    EXPECT_EQ(each.is_required(), each.name() == "db" || each.name() == "auth");
  }
  EXPECT_THAT(order, ElementsAre(Pair("db", v1::COMPANION_ROLE_REQUIRED_SERVICE),
                                 Pair("auth", v1::COMPANION_ROLE_REQUIRED_SERVICE),
                                 Pair("cache", v1::COMPANION_ROLE_OPTIONAL_SERVICE),
                                 Pair("proxy", v1::COMPANION_ROLE_COMPANION),
                                 Pair("mail", v1::COMPANION_ROLE_COMPANION)));
}

}  // namespace
}  // namespace agbox
