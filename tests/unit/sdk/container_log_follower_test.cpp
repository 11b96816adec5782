// SPDX-License-Identifier: Apache-2.0
#include <agbox/container_log_follower.h>
#include <gmock/gmock.h>

#include <thread>

#include "unit/sdk/raw_client_fixture.h"

namespace agbox::sdk {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

class ContainerLogFollowerTest : public RawClientTest {
 protected:
  static v1::ReadContainerLogsResponse line(const std::string& data) {
    v1::ReadContainerLogsResponse response;
    response.set_stream(v1::OUTPUT_STREAM_STDOUT);
    response.set_data(data);
    return response;
  }
  static void prepare(test::ScriptedDaemon& daemon) {
    daemon.log = {line("one\n"), line("two\n"), line("three\n")};
  }
  static v1::ReadContainerLogsRequest request() {
    v1::ReadContainerLogsRequest made;
    made.set_sandbox_id("box-1");
    made.set_container("db");
    made.set_follow(true);
    made.set_tail(10);
    return made;
  }
  // Until the end, or an error.
  Result<void> read_all(const FollowOptions& options = {
                            .first_delay = std::chrono::milliseconds(1)}) {
    const RawClient used = client();
    ContainerLogFollower log(used, request(), options);
    while (true) {
      const auto piece = log.next();
      if (!piece) return std::unexpected(piece.error());
      if (!*piece) return {};
      printed_.push_back((*piece)->data());
    }
  }

  test::ScriptedDaemon daemon_{socket(), prepare};
  std::vector<std::string> printed_;
};

TEST_F(ContainerLogFollowerTest, ReadsUntilTheEnd) {
  EXPECT_TRUE(read_all().has_value());
  EXPECT_THAT(printed_, ElementsAre("one\n", "two\n", "three\n"));
  EXPECT_THAT(daemon_.calls(),
              ElementsAre("ReadContainerLogs sandbox_id: \"box-1\" container: \"db\" follow: true "
                          "tail: 10"));
}

TEST_F(ContainerLogFollowerTest, ContinuesAfterALossWithTheCursor) {
  daemon_.break_log_after = 2;
  EXPECT_TRUE(read_all().has_value());
  EXPECT_THAT(printed_, ElementsAre("one\n", "two\n", "three\n"));
  EXPECT_THAT(daemon_.calls().back(), testing::EndsWith("tail: 10 cursor: \"2\""));
}

TEST_F(ContainerLogFollowerTest, ReportsAnEngineThatIsUnreachable) {
  daemon_.log.clear();
  daemon_.stream_status =
      test::ErrorInfoBytes{.code = grpc::UNAVAILABLE, .reason = "ENGINE_UNAVAILABLE"}.status();
  const auto read = read_all();
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().reason, "ENGINE_UNAVAILABLE");
  EXPECT_THAT(daemon_.calls(), SizeIs(1));
}

TEST_F(ContainerLogFollowerTest, EndsWhenStopped) {
  daemon_.keep_streams_open = true;
  std::stop_source stop;
  const std::jthread person([&] {
    EXPECT_TRUE(daemon_.wait_for_call("ReadContainerLogs"));
    stop.request_stop();
  });
  const auto read = read_all({.stop = stop.get_token()});
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().kind, ErrorKind::Cancelled);
}

}  // namespace
}  // namespace agbox::sdk
