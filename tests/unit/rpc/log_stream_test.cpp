// SPDX-License-Identifier: Apache-2.0
// ReadContainerLogs behind a real gRPC server; the test plays the log.
#include "rpc/log_stream.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "agbox/v1/service.grpc.pb.h"
#include "model/reasons.h"
#include "rpc/status.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

using LogServiceBase =
    v1::SandboxService::WithRawCallbackMethod_ReadContainerLogs<v1::SandboxService::Service>;

class LogService final : public LogServiceBase {
 public:
  LogService(ControlLoop& loop, ReadLog read_log) : loop_(loop), read_log_(std::move(read_log)) {}
  grpc::ServerWriteReactor<grpc::ByteBuffer>* ReadContainerLogs(
      grpc::CallbackServerContext*, const grpc::ByteBuffer* request) override {
    return open_log_stream(loop_, read_log_, streams_, *request);
  }
  void end_streams(const grpc::Status& status) {
    loop_.post([streams = streams_, status] { streams->end_all(status); });
  }

 private:
  ControlLoop& loop_;
  ReadLog read_log_;
  std::shared_ptr<OpenStreams> streams_ = std::make_shared<OpenStreams>();
};

// A log of equal pieces, which then ends or waits until it is cancelled.
class LogStreamTest : public testing::Test {
 protected:
  LogStreamTest() {
    std::promise<void> started;
    auto is_started = started.get_future();
    thread_ = std::jthread([this, started = std::move(started)]() mutable {
      ControlLoop loop;
      TaskGroup tasks(loop.io().get_executor());
      loop_ = &loop;
      tasks_ = &tasks;
      started.set_value();
      loop.run();
    });
    is_started.wait();
    service_ = std::make_unique<LogService>(
        *loop_, [this](const ContainerLogs::Request& request, ContainerLogs::Write write,
                       std::function<void(Result<>)> done) {
          return tasks_->spawn("log", play(request, std::move(write), std::move(done)));
        });
    grpc::ServerBuilder builder;
    const std::string socket = "unix:" + (temp_directory_.path() / "sock").string();
    builder.AddListeningPort(socket, grpc::InsecureServerCredentials());
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateChannel(socket, grpc::InsecureChannelCredentials());
    stub_ = v1::SandboxService::NewStub(channel_);
  }
  ~LogStreamTest() override {
    service_->end_streams(to_status(shutting_down()));
    server_->Shutdown(std::chrono::system_clock::now() + 1s);
    loop_->post([this] { loop_->stop(); });
  }

  asio::awaitable<void> play(ContainerLogs::Request request, ContainerLogs::Write write,
                             std::function<void(Result<>)> done) {
    note([&] { asked_ = std::move(request); });
    if (refusal_) co_return done(std::unexpected(*refusal_));
    for (int i = 0; i < pieces_; ++i) {
      LogPiece piece{.stream = v1::OUTPUT_STREAM_STDERR,
                     .data = std::string(piece_bytes_, 'x'),
                     .end = {.time = WallTime(1'700'000'000'000'000'000ns + 5ns), .bytes = 7}};
      note([&] { ++begun_; });
      if (!co_await write(std::move(piece))) {
        note([&] { has_ended_ = true; });
        co_return done(fail(reason::kCancelled, "cancelled"));
      }
    }
    if (waits_) {
      Event never(loop_->io().get_executor());
      co_await never.wait();
    }
    note([&] { has_ended_ = true; });
    done(waits_ ? Result<>(fail(reason::kCancelled, "cancelled")) : Result<>());
  }

  template <class Change>
  void note(Change change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }
  template <class Holds>
  bool wait_until(Holds holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 10s, holds);
  }

  struct Answer {
    grpc::Status status;
    std::string data;
    v1::ReadContainerLogsResponse last;
  };
  Answer read(const v1::ReadContainerLogsRequest& request) {
    grpc::ClientContext context;
    auto reader = stub_->ReadContainerLogs(&context, request);
    Answer answer;
    v1::ReadContainerLogsResponse response;
    while (reader->Read(&response)) {
      answer.data += response.data();
      answer.last = response;
    }
    answer.status = reader->Finish();
    return answer;
  }

  TempDirectory temp_directory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  ContainerLogs::Request asked_;
  int pieces_ = 3;
  std::size_t piece_bytes_ = 2;
  int begun_ = 0;
  bool waits_ = false;
  bool has_ended_ = false;
  std::optional<Error> refusal_;
  ControlLoop* loop_ = nullptr;
  TaskGroup* tasks_ = nullptr;
  std::jthread thread_;
  std::unique_ptr<LogService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::SandboxService::Stub> stub_;
};

TEST_F(LogStreamTest, PassesTheRequestAndThePiecesOn) {
  v1::ReadContainerLogsRequest request;
  request.set_sandbox_id("box");
  request.set_container("db");
  request.set_follow(true);
  request.set_stream(v1::OUTPUT_STREAM_STDERR);
  request.set_tail(0);
  request.mutable_since()->set_seconds(1'700'000'000);
  request.mutable_since()->set_nanos(9);
  request.set_cursor("1700000000000000005+7");
  const Answer answer = read(request);
  EXPECT_TRUE(answer.status.ok());
  EXPECT_EQ(answer.data, "xxxxxx");
  EXPECT_EQ(answer.last.stream(), v1::OUTPUT_STREAM_STDERR);
  EXPECT_EQ(answer.last.time().seconds(), 1'700'000'000);
  EXPECT_EQ(answer.last.time().nanos(), 5);
  EXPECT_EQ(answer.last.cursor(), request.cursor());
  EXPECT_EQ(asked_.sandbox_id, "box");
  EXPECT_EQ(asked_.container, "db");
  EXPECT_TRUE(asked_.query.follow);
  EXPECT_FALSE(asked_.query.with_stdout);
  EXPECT_TRUE(asked_.query.with_stderr);
  EXPECT_EQ(asked_.query.tail, 0U);
  EXPECT_EQ(asked_.query.since, WallTime(1'700'000'000'000'000'009ns));
  EXPECT_EQ(cursor_of(asked_.query.after.value()), request.cursor());
}

TEST_F(LogStreamTest, DefaultsAreEverythingOfThePrimary) {
  EXPECT_TRUE(read({}).status.ok());
  EXPECT_EQ(asked_.container, "");
  EXPECT_TRUE(asked_.query.with_stdout && asked_.query.with_stderr);
  EXPECT_FALSE(asked_.query.follow || asked_.query.tail || asked_.query.since ||
               asked_.query.after);
}

TEST_F(LogStreamTest, BadRequestsNameTheField) {
  v1::ReadContainerLogsRequest bad_stream;
  bad_stream.set_stream(static_cast<v1::OutputStream>(9));
  v1::ReadContainerLogsRequest bad_since;
  bad_since.mutable_since()->set_seconds(-1);
  v1::ReadContainerLogsRequest bad_nanos;
  bad_nanos.mutable_since()->set_nanos(1'000'000'000);
  v1::ReadContainerLogsRequest bad_cursor;
  bad_cursor.set_cursor("yesterday");
  const std::vector<std::pair<v1::ReadContainerLogsRequest, std::string>> all{
      {bad_stream, "stream"}, {bad_since, "since"}, {bad_nanos, "since"}, {bad_cursor, "cursor"}};
  for (const auto& [request, field] : all) {
    const Answer answer = read(request);
    EXPECT_EQ(answer.status.error_code(), grpc::INVALID_ARGUMENT);
    EXPECT_THAT(answer.status.error_message(), HasSubstr(field));
  }
}

TEST_F(LogStreamTest, ARefusalIsTheStatus) {
  refusal_ = Error(reason::kContainerNotFound, "no such container");
  const Answer answer = read({});
  EXPECT_EQ(answer.status.error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(answer.status.error_message(), "no such container");
}

// gRPC buffers a little; everything else waits until the client reads.
TEST_F(LogStreamTest, AClientThatDoesNotReadStopsTheLog) {
  pieces_ = 1000;
  piece_bytes_ = 64 << 10;
  grpc::ClientContext context;
  auto reader = stub_->ReadContainerLogs(&context, v1::ReadContainerLogsRequest());
  ASSERT_TRUE(wait_until([&] { return begun_ > 0; }));
  int before = -1;
  // Until gRPC takes no more: nothing tells that, so it is observed for a while.
  while (true) {
    std::unique_lock lock(mutex_);
    if (before == begun_) break;
    before = begun_;
    changed_.wait_for(lock, 500ms, [&] { return begun_ > before + 100; });
  }
  EXPECT_LT(before, 200) << "of a thousand pieces";
  std::size_t bytes = 0;
  v1::ReadContainerLogsResponse response;
  while (reader->Read(&response)) bytes += response.data().size();
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(bytes, 1000U * (64U << 10U));
}

TEST_F(LogStreamTest, AClientThatLeavesEndsTheLog) {
  waits_ = true;
  grpc::ClientContext context;
  auto reader = stub_->ReadContainerLogs(&context, v1::ReadContainerLogsRequest());
  v1::ReadContainerLogsResponse response;
  for (int i = 0; i < pieces_; ++i) ASSERT_TRUE(reader->Read(&response));
  context.TryCancel();
  EXPECT_TRUE(wait_until([&] { return has_ended_; }));
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::CANCELLED);
}

TEST_F(LogStreamTest, AClientThatLeavesDuringAWriteEndsTheLog) {
  pieces_ = 1000;
  piece_bytes_ = 64 << 10;
  grpc::ClientContext context;
  auto reader = stub_->ReadContainerLogs(&context, v1::ReadContainerLogsRequest());
  ASSERT_TRUE(wait_until([&] { return begun_ > 0; }));
  context.TryCancel();
  EXPECT_TRUE(wait_until([&] { return has_ended_; }));
  v1::ReadContainerLogsResponse response;
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::CANCELLED);
}

TEST_F(LogStreamTest, AStreamEndsWhenTheDaemonShutsDown) {
  waits_ = true;
  grpc::ClientContext context;
  auto reader = stub_->ReadContainerLogs(&context, v1::ReadContainerLogsRequest());
  v1::ReadContainerLogsResponse response;
  for (int i = 0; i < pieces_; ++i) ASSERT_TRUE(reader->Read(&response));
  service_->end_streams(to_status(shutting_down()));
  EXPECT_FALSE(reader->Read(&response));
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("shutting down"));
  EXPECT_EQ(read({}).status.error_code(), grpc::UNAVAILABLE) << "also one that begins later";
}

}  // namespace
}  // namespace agbox
