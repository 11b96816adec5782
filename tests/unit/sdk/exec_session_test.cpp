// SPDX-License-Identifier: Apache-2.0
#include <agbox/exec_session.h>
#include <agbox/v1/service.grpc.pb.h>
#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <thread>

#include "base/check.h"
#include "unit/sdk/scripted_daemon.h"

namespace agbox::sdk {
namespace {

using Stream = grpc::ServerReaderWriter<v1::AttachExecResponse, v1::AttachExecRequest>;
using Connection = std::function<grpc::Status(Stream&, const v1::AttachStart&)>;

// A daemon of which each connection of a session is one function.
class AttachDaemon final : public v1::SandboxService::Service {
 public:
  AttachDaemon() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket().string(), grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    AGBOX_CHECK(server_ != nullptr, "the test's server cannot listen");
  }
  ~AttachDaemon() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }
  std::filesystem::path socket() const { return directory_.path() / "sock"; }

  std::deque<Connection> connections;

  grpc::Status Ping(grpc::ServerContext*, const v1::PingRequest*, v1::PingResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status AttachExec(grpc::ServerContext*, Stream* stream) override {
    v1::AttachExecRequest first;
    if (connections.empty() || !stream->Read(&first) || !first.has_start()) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "unexpected"};
    }
    const Connection connection = std::move(connections.front());
    connections.pop_front();
    return connection(*stream, first.start());
  }

 private:
  test::ShortDirectory directory_;
  std::unique_ptr<grpc::Server> server_;
};

grpc::Status lost() {
  return test::ErrorInfoBytes{.code = grpc::StatusCode::UNAVAILABLE,
                              .message = "agboxd is shutting down",
                              .reason = "SHUTTING_DOWN"}
      .status();
}

void attached(Stream& stream, std::uint64_t input_offset) {
  v1::AttachExecResponse response;
  response.mutable_attached()->set_input_offset(input_offset);
  stream.Write(response);
}

void print(Stream& stream, std::uint64_t offset, const std::string& data) {
  v1::AttachExecResponse response;
  response.mutable_output()->set_stream(v1::OUTPUT_STREAM_STDOUT);
  response.mutable_output()->set_offset(offset);
  response.mutable_output()->set_data(data);
  stream.Write(response);
}

void accept(Stream& stream, std::uint64_t position) {
  v1::AttachExecResponse response;
  response.set_input_accepted(position);
  stream.Write(response);
}

grpc::Status end(Stream& stream, int code) {
  v1::AttachExecResponse response;
  response.mutable_ended()->set_state(v1::EXEC_STATE_FAILED);
  response.mutable_ended()->set_exit_code(code);
  stream.Write(response);
  return grpc::Status::OK;
}

// Input until its end, or so many bytes.
std::string take(Stream& stream, std::size_t most = SIZE_MAX) {
  std::string input;
  v1::AttachExecRequest request;
  while (input.size() < most && stream.Read(&request) && !request.has_end_input()) {
    input += request.input();
  }
  return input;
}

class ExecSessionTest : public testing::Test {
 protected:
  SessionOptions options() {
    SessionOptions session;
    session.sinks.on_stdout = [this](std::string_view bytes) { out_ += bytes; };
    session.sinks.on_stderr = [](std::string_view) {};
    return session;
  }

  AttachDaemon daemon_;
  RawClient client_ = RawClient::open({.socket = daemon_.socket()}).value();
  std::string out_;
};

TEST_F(ExecSessionTest, PassesOnOutputAndTheEnd) {
  daemon_.connections.emplace_back([](Stream& stream, const v1::AttachStart& start) {
    EXPECT_EQ(start.exec_id(), "exec-1");
    EXPECT_TRUE(start.write());
    EXPECT_FALSE(start.has_stdout_offset());
    attached(stream, 0);
    print(stream, 0, "hello ");
    print(stream, 6, "there");
    return end(stream, 3);
  });
  ExecSession session(client_, "exec-1", options());
  const auto ended = session.run();
  ASSERT_TRUE(ended.has_value()) << ended.error().message;
  EXPECT_EQ(ended->exit_code(), 3);
  EXPECT_EQ(out_, "hello there");
  EXPECT_FALSE(session.write("too late"));
}

TEST_F(ExecSessionTest, OutputContinuesWhereTheLostConnectionStopped) {
  daemon_.connections.emplace_back([](Stream& stream, const v1::AttachStart&) {
    attached(stream, 0);
    print(stream, 100, "hello ");
    return lost();
  });
  daemon_.connections.emplace_back([](Stream& stream, const v1::AttachStart& start) {
    EXPECT_EQ(start.stdout_offset(), 106U);
    attached(stream, 0);
    print(stream, 106, "again");
    return end(stream, 0);
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
  daemon_.connections.emplace_back([&](Stream& stream, const v1::AttachStart&) {
    attached(stream, 1000);
    first = take(stream, 32 << 10);
    accept(stream, 1000 + 10'000);
    return lost();
  });
  daemon_.connections.emplace_back([&](Stream& stream, const v1::AttachStart&) {
    attached(stream, 1000 + 20'000);
    std::uint64_t position = 21'000;
    v1::AttachExecRequest request;
    while (stream.Read(&request) && !request.has_end_input()) {
      second += request.input();
      accept(stream, position += request.input().size());
    }
    return end(stream, 0);
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
  daemon_.connections.emplace_back([&](Stream& stream, const v1::AttachStart&) {
    attached(stream, 0);
    taken = take(stream, 64 << 10);
    EXPECT_EQ(taken.size(), 64U << 10);  // no more before it is accepted
    accept(stream, taken.size());
    taken += take(stream);
    return end(stream, 0);
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
  daemon_.connections.emplace_back([](Stream& stream, const v1::AttachStart&) {
    attached(stream, 0);
    take(stream, 1);
    v1::AttachExecResponse response;
    response.mutable_input_stopped()->set_reason(v1::InputStopped::REASON_TAKEN_OVER);
    stream.Write(response);
    print(stream, 0, "still here");
    return end(stream, 0);
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
  const auto next_size = [](Stream& stream) {
    v1::AttachExecRequest request;
    while (stream.Read(&request) && !request.has_resize()) {
    }
    return request.resize().columns();
  };
  daemon_.connections.emplace_back([&](Stream& stream, const v1::AttachStart&) {
    attached(stream, 0);
    EXPECT_EQ(next_size(stream), 90U);
    return lost();
  });
  daemon_.connections.emplace_back([&](Stream& stream, const v1::AttachStart&) {
    attached(stream, 0);
    EXPECT_EQ(next_size(stream), 90U);
    return end(stream, 0);
  });
  ExecSession session(client_, "exec-1", options());
  session.resize(30, 90);
  ASSERT_TRUE(session.run().has_value());
}

TEST_F(ExecSessionTest, AStopRequestEndsTheSession) {
  daemon_.connections.emplace_back([](Stream& stream, const v1::AttachStart&) {
    attached(stream, 0);
    take(stream);
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
  daemon_.connections.emplace_back([](Stream&, const v1::AttachStart&) {
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
