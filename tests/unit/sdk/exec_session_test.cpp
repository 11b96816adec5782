// SPDX-License-Identifier: Apache-2.0
#include <agbox/exec_session.h>
#include <gmock/gmock.h>

#include <thread>

#include "unit/sdk/attach_script.h"
#include "unit/sdk/raw_client_fixture.h"

namespace agbox::sdk {
namespace {

using test::accept_input;
using test::attached;
using test::end_exec;
using test::lost;
using test::print;
using test::take_input;

class ExecSessionTest : public RawClientTest {
 protected:
  SessionOptions options() {
    SessionOptions session;
    session.sinks.on_stdout = [this](std::string_view bytes) { out_ += bytes; };
    session.sinks.on_stderr = [](std::string_view) {};
    return session;
  }

  test::ScriptedDaemon daemon_{socket()};
  RawClient client_ = client();
  std::string out_;
};

TEST_F(ExecSessionTest, PassesOnOutputAndTheEnd) {
  daemon_.attach_connections.emplace_back(
      [](test::AttachStream& stream, const v1::AttachStart& start) {
        EXPECT_EQ(start.exec_id(), "exec-1");
        EXPECT_TRUE(start.write());
        EXPECT_FALSE(start.has_stdout_offset());
        attached(stream, 0);
        print(stream, 0, "hello ");
        print(stream, 6, "there");
        return end_exec(stream, 3);
      });
  ExecSession session(client_, "exec-1", options());
  const auto ended = session.run();
  ASSERT_TRUE(ended.has_value()) << ended.error().message;
  EXPECT_EQ(ended->exit_code(), 3);
  EXPECT_EQ(out_, "hello there");
  EXPECT_FALSE(session.write("too late"));
}

TEST_F(ExecSessionTest, OutputContinuesWhereTheLostConnectionStopped) {
  daemon_.attach_connections.emplace_back([](test::AttachStream& stream, const v1::AttachStart&) {
    attached(stream, 0);
    print(stream, 100, "hello ");
    return lost();
  });
  daemon_.attach_connections.emplace_back(
      [](test::AttachStream& stream, const v1::AttachStart& start) {
        EXPECT_EQ(start.stdout_offset(), 106U);
        attached(stream, 0);
        print(stream, 106, "again");
        return end_exec(stream, 0);
      });
  ExecSession session(client_, "exec-1", options());
  ASSERT_TRUE(session.run().has_value());
  EXPECT_EQ(out_, "hello again");
}

// The daemon was killed after it had passed on more than it could say.
TEST_F(ExecSessionTest, InputIsNeitherLostNorSentTwice) {
  const std::string input(200'000, 'x');
  std::string first;
  std::string second;
  daemon_.attach_connections.emplace_back([&](test::AttachStream& stream, const v1::AttachStart&) {
    attached(stream, 1000);
    first = take_input(stream, 32 << 10);
    accept_input(stream, 1000 + 10'000);
    return lost();
  });
  daemon_.attach_connections.emplace_back([&](test::AttachStream& stream, const v1::AttachStart&) {
    attached(stream, 1000 + 20'000);
    std::uint64_t position = 21'000;
    v1::AttachExecRequest request;
    while (stream.Read(&request) && !request.has_end_input()) {
      second += request.input();
      accept_input(stream, position += request.input().size());
    }
    return end_exec(stream, 0);
  });
  ExecSession session(client_, "exec-1", options());
  std::thread typing([&] {
    EXPECT_TRUE(session.write(input));
    session.end_input();
  });
  ASSERT_TRUE(session.run().has_value());
  typing.join();
  EXPECT_EQ(second.size(), input.size() - 20'000);
}

TEST_F(ExecSessionTest, AWriterWaitsForTheExec) {
  std::string taken;
  daemon_.attach_connections.emplace_back([&](test::AttachStream& stream, const v1::AttachStart&) {
    attached(stream, 0);
    taken = take_input(stream, 64 << 10);
    EXPECT_EQ(taken.size(), 64U << 10);  // no more before it is accepted
    accept_input(stream, taken.size());
    taken += take_input(stream);
    return end_exec(stream, 0);
  });
  ExecSession session(client_, "exec-1", options());
  std::thread typing([&] {
    EXPECT_TRUE(session.write(std::string(100'000, 'y')));
    session.end_input();
  });
  ASSERT_TRUE(session.run().has_value());
  typing.join();
  EXPECT_EQ(taken.size(), 100'000U);
}

TEST_F(ExecSessionTest, AnotherWriterIsReportedAndEndsTheWaits) {
  daemon_.attach_connections.emplace_back([](test::AttachStream& stream, const v1::AttachStart&) {
    attached(stream, 0);
    take_input(stream, 1);
    v1::AttachExecResponse response;
    response.mutable_input_stopped()->set_reason(v1::InputStopped::REASON_TAKEN_OVER);
    stream.Write(response);
    print(stream, 0, "still here");
    return end_exec(stream, 0);
  });
  SessionOptions session_options = options();
  std::vector<v1::InputStopped::Reason> reasons;
  session_options.on_input_stopped = [&](const v1::InputStopped& stopped) {
    reasons.push_back(stopped.reason());
  };
  ExecSession session(client_, "exec-1", std::move(session_options));
  std::thread typing([&] { EXPECT_FALSE(session.write(std::string(1'000'000, 'z'))); });
  ASSERT_TRUE(session.run().has_value());
  typing.join();
  EXPECT_THAT(reasons, testing::ElementsAre(v1::InputStopped::REASON_TAKEN_OVER));
  EXPECT_EQ(out_, "still here");
}

TEST_F(ExecSessionTest, TheSizeIsSentAgainAfterALoss) {
  const auto next_size = [](test::AttachStream& stream) {
    v1::AttachExecRequest request;
    while (stream.Read(&request) && !request.has_resize()) {
    }
    return request.resize().columns();
  };
  daemon_.attach_connections.emplace_back([&](test::AttachStream& stream, const v1::AttachStart&) {
    attached(stream, 0);
    EXPECT_EQ(next_size(stream), 90U);
    return lost();
  });
  daemon_.attach_connections.emplace_back([&](test::AttachStream& stream, const v1::AttachStart&) {
    attached(stream, 0);
    EXPECT_EQ(next_size(stream), 90U);
    return end_exec(stream, 0);
  });
  ExecSession session(client_, "exec-1", options());
  session.resize(30, 90);
  ASSERT_TRUE(session.run().has_value());
}

TEST_F(ExecSessionTest, AStopRequestEndsTheSession) {
  daemon_.attach_connections.emplace_back([](test::AttachStream& stream, const v1::AttachStart&) {
    attached(stream, 0);
    take_input(stream);
    return grpc::Status::OK;
  });
  std::stop_source stop;
  SessionOptions session_options = options();
  session_options.follow.stop = stop.get_token();
  ExecSession session(client_, "exec-1", std::move(session_options));
  std::thread stopping([&] { stop.request_stop(); });
  const auto ended = session.run();
  stopping.join();
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().kind, ErrorKind::Cancelled);
}

TEST_F(ExecSessionTest, AnErrorIsNotRetried) {
  daemon_.attach_connections.emplace_back([](test::AttachStream&, const v1::AttachStart&) {
    return test::ErrorInfoBytes{.code = grpc::StatusCode::NOT_FOUND,
                                .message = "exec exec-1 was not found",
                                .reason = "EXEC_NOT_FOUND"}
        .status();
  });
  ExecSession session(client_, "exec-1", options());
  const auto ended = session.run();
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().code, StatusCode::NotFound);
}

}  // namespace
}  // namespace agbox::sdk
