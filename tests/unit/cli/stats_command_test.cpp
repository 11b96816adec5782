// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "cli/format/stats_text.h"
#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(BytesText, HasAUnit) {
  EXPECT_EQ(bytes_text(0), "0B");
  EXPECT_EQ(bytes_text(1023), "1023B");
  EXPECT_EQ(bytes_text(1024), "1.0KiB");
  EXPECT_EQ(bytes_text(1536U << 10U), "1.5MiB");
  EXPECT_EQ(bytes_text(200U << 20U), "200MiB");
  EXPECT_EQ(bytes_text(UINT64_MAX), "16.0EiB");
}

class StatsCommand : public Commands {
 protected:
  static v1::SandboxStats stats(std::int64_t seconds, std::int32_t cpu_nanos) {
    v1::SandboxStats made;
    made.set_sandbox_id("box-1");
    made.mutable_time()->set_seconds(seconds);
    v1::ContainerStats& primary = *made.add_containers();
    primary.set_name("primary");
    primary.set_running(true);
    primary.mutable_cpu_time()->set_seconds(3);
    primary.mutable_cpu_time()->set_nanos(cpu_nanos);
    primary.set_memory_bytes(5U << 20U);
    primary.set_memory_limit_bytes(1U << 30U);
    primary.set_memory_peak_bytes(6U << 20U);
    primary.set_pids(4);
    primary.set_network_rx_bytes(10);
    primary.set_network_tx_bytes(2048);
    made.add_containers()->set_name("db");
    return made;
  }
  static void prepare(test::ScriptedDaemon& daemon) {
    daemon.sandbox = box_in(v1::SANDBOX_STATE_READY);
    daemon.stats = {stats(100, 0), stats(102, 500'000'000)};
  }

  test::ScriptedDaemon daemon_{socket(), prepare};
};

const std::string kStatsHeader =
    "SANDBOX ID  CONTAINER  CPU %        CPU TIME  MEM USAGE / LIMIT  MEM PEAK  NET RX / TX   "
    "BLOCK READ / WRITE  PIDS\n";
const std::string kStopped =
    "box-1       db         not running  --        --                 --        --            --"
    "                  --\n";

TEST_F(StatsCommand, ShowsOneRowPerContainer) {
  EXPECT_EQ(run({"stats"}), 0);
  EXPECT_EQ(out_, kStatsHeader +
                      "box-1       primary    --           3.00s     5.0MiB / 1.0GiB    6.0MiB    "
                      "10B / 2.0KiB  0B / 0B             4\n" +
                      kStopped);
  EXPECT_EQ(run({"stats", "box-1", "box-1"}), 0);
  EXPECT_THAT(daemon_.calls(),
              ElementsAre(HasSubstr("ListSandboxes"), "GetStats sandbox_id: \"box-1\"",
                          "GetSandbox sandbox_id: \"box-1\"", "GetSandbox sandbox_id: \"box-1\"",
                          "GetStats sandbox_id: \"box-1\"", "GetStats sandbox_id: \"box-1\""));
}

TEST_F(StatsCommand, FollowsAndComputesTheUsageInBetween) {
  EXPECT_EQ(run({"stats", "-f", "--interval", "1.5s", "box-1"}), 0);
  EXPECT_THAT(out_, HasSubstr("box-1       primary    25.0%        3.50s"));
  EXPECT_THAT(daemon_.calls(),
              ElementsAre("GetSandbox sandbox_id: \"box-1\"",
                          "WatchStats sandbox_id: \"box-1\" interval { seconds: 1 nanos: "
                          "500000000 }"));
}

TEST_F(StatsCommand, PrintsJson) {
  EXPECT_EQ(run({"stats", "--json", "box-1"}), 0);
  EXPECT_THAT(out_, testing::StartsWith("{\"sandbox_id\": \"box-1\""));
  EXPECT_EQ(std::ranges::count(out_, '\n'), 1);
  EXPECT_EQ(run({"stats", "--json", "-f", "box-1"}), 0);
  EXPECT_EQ(std::ranges::count(out_, '\n'), 2);
}

TEST_F(StatsCommand, RefusesABadInterval) {
  for (const char* bad : {"0.5s", "61s", "x", "-1s"}) {
    EXPECT_EQ(run({"stats", "-f", "--interval", bad, "box-1"}), 2) << bad;
    EXPECT_THAT(error_, HasSubstr("is not a duration of 1s to 60s"));
  }
  EXPECT_EQ(run({"stats", "--interval", "2s", "box-1"}), 2);
  EXPECT_EQ(error_, "--interval requires --follow\n");
  EXPECT_THAT(daemon_.calls(), IsEmpty());
}

TEST_F(StatsCommand, ReportsErrors) {
  daemon_.status = unknown("box-1");
  EXPECT_EQ(run({"stats", "box-1"}), 1);
  EXPECT_EQ(error_, "get stats: Sandbox box-1 not found.\n");
  daemon_.stats.clear();
  EXPECT_EQ(run({"stats", "-f", "box-1"}), 1);
  EXPECT_EQ(error_, "watch stats: Sandbox box-1 not found.\n");
}

TEST_F(StatsCommand, EndsWithCtrlC) {
  daemon_.keep_streams_open = true;
  const auto person = interrupt_at(daemon_, "WatchStats");
  EXPECT_EQ(run({"stats", "-f", "box-1"}), 130);
}

}  // namespace
}  // namespace agbox::cli
