// SPDX-License-Identifier: Apache-2.0
// agbox logs --container; exec_show_test.cpp has the output of execs.
#include <gmock/gmock.h>

#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ContainerLogsCommand : public Commands {
 protected:
  static void prepare(test::ScriptedDaemon& daemon) {
    daemon.sandbox = box_in(v1::SANDBOX_STATE_READY);
    daemon.log.resize(3);
    daemon.log[0].set_stream(v1::OUTPUT_STREAM_STDOUT);
    daemon.log[0].set_data(std::string("out\0\xff\n", 6));
    daemon.log[1].set_stream(v1::OUTPUT_STREAM_STDERR);
    daemon.log[1].set_data("err\n");
    daemon.log[2].set_stream(v1::OUTPUT_STREAM_STDOUT);
    daemon.log[2].set_data("more\n");
  }

  test::ScriptedDaemon daemon_{socket(), prepare};
};

TEST_F(ContainerLogsCommand, PrintsBytesUnchangedWhereTheyBelong) {
  EXPECT_EQ(run({"logs", "box-1", "--container", "db"}), 0);
  EXPECT_EQ(out_, std::string("out\0\xff\nmore\n", 11));
  EXPECT_EQ(error_, "err\n");
  EXPECT_THAT(daemon_.calls(),
              ElementsAre("GetSandbox sandbox_id: \"box-1\"",
                          "ReadContainerLogs sandbox_id: \"box-1\" container: \"db\""));
}

TEST_F(ContainerLogsCommand, SelectsWhatToPrint) {
  EXPECT_EQ(run({"logs", "-f", "--tail", "0", "--since", "2026-01-02T03:04:05.5Z", "--container",
                 "primary", "--stream", "stdout", "box-1"}),
            0);
  EXPECT_THAT(daemon_.calls(),
              ElementsAre("GetSandbox sandbox_id: \"box-1\"",
                          "ReadContainerLogs sandbox_id: \"box-1\" container: \"primary\" follow: "
                          "true since { seconds: 1767323045 nanos: 500000000 } tail: 0 stream: "
                          "OUTPUT_STREAM_STDOUT"));
  EXPECT_EQ(run({"logs", "--since", "10m", "--container", "db", "box-1"}), 0);
  EXPECT_THAT(daemon_.calls().back(), HasSubstr("since { seconds: "));
}

TEST_F(ContainerLogsCommand, RefusesWhatMakesNoSense) {
  EXPECT_EQ(run({"logs", "--container", "db", "--tail", "-1", "box-1"}), 2);
  EXPECT_EQ(error_, "--tail: \"-1\" is not a number of lines\n");
  EXPECT_EQ(run({"logs", "--container", "db", "--since", "yesterday", "box-1"}), 2);
  EXPECT_THAT(error_, HasSubstr("--since: \"yesterday\" is neither a duration, such as 10m"));
  EXPECT_EQ(run({"logs", "--tail", "1", "exec-1"}), 2);
  EXPECT_EQ(error_, "--tail requires --container\n");
  EXPECT_EQ(run({"logs", "--since", "1h", "exec-1"}), 2);
  EXPECT_EQ(error_, "--since requires --container\n");
  EXPECT_THAT(daemon_.calls(), Not(Contains(StartsWith("Read"))));
}

TEST_F(ContainerLogsCommand, OfASandboxAreThoseOfItsPrimaryContainer) {
  daemon_.next_statuses = {{grpc::NOT_FOUND, "no such exec"}};
  daemon_.pages.resize(1);  // no sandbox has execs
  EXPECT_EQ(run({"logs", "--tail", "9", "box-1"}), 0);
  EXPECT_EQ(daemon_.calls().back(),
            "ReadContainerLogs sandbox_id: \"box-1\" container: \"primary\" tail: 9");
  EXPECT_EQ(error_, "err\n");
}

TEST_F(ContainerLogsCommand, EndsWithCtrlC) {
  daemon_.keep_streams_open = true;
  const auto person = interrupt_at(daemon_, "ReadContainerLogs");
  EXPECT_EQ(run({"logs", "-f", "--container", "db", "box-1"}), 130);
}

TEST_F(ContainerLogsCommand, ReportsWhatTheDaemonSays) {
  daemon_.log.clear();
  daemon_.status = test::ErrorInfoBytes{.code = grpc::NOT_FOUND,
                                        .message = "sandbox box-1 has no container \"web\"",
                                        .reason = "CONTAINER_NOT_FOUND",
                                        .metadata = {{"sandbox_id", "box-1"}}}
                       .status();
  EXPECT_EQ(run({"logs", "--container", "web", "box-1"}), 1);
  EXPECT_EQ(error_, "read container logs: sandbox box-1 has no container \"web\"\n");
}

}  // namespace
}  // namespace agbox::cli
