// SPDX-License-Identifier: Apache-2.0
// WatchStats behind a real gRPC server; log_stream_test.cpp has what it shares with other streams.
#include "rpc/stats_stream.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "agbox/v1/service.grpc.pb.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

using StatsServiceBase =
    v1::SandboxService::WithRawCallbackMethod_WatchStats<v1::SandboxService::Service>;

class StatsService final : public StatsServiceBase {
 public:
  StatsService(ControlLoop& loop, agbox::WatchStats watch)
      : loop_(loop), watch_(std::move(watch)) {}
  grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchStats(grpc::CallbackServerContext*,
                                                         const grpc::ByteBuffer* request) override {
    return open_stats_stream(loop_, watch_, streams_, *request);
  }

 private:
  ControlLoop& loop_;
  agbox::WatchStats watch_;
  std::shared_ptr<OpenStreams> streams_ = std::make_shared<OpenStreams>();
};

// A sandbox of two measurements.
class StatsStreamTest : public testing::Test {
 protected:
  StatsStreamTest() {
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
    service_ = std::make_unique<StatsService>(
        *loop_, [this](std::string sandbox_id, std::chrono::nanoseconds interval,
                       StatsSampler::Write write, std::function<void(Result<>)> done) {
          interval_ = interval;
          return tasks_->spawn("stats", play(std::move(sandbox_id), std::move(write), done));
        });
    grpc::ServerBuilder builder;
    const std::string socket = "unix:" + (temp_directory_.path() / "sock").string();
    builder.AddListeningPort(socket, grpc::InsecureServerCredentials());
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = v1::SandboxService::NewStub(
        grpc::CreateChannel(socket, grpc::InsecureChannelCredentials()));
  }
  ~StatsStreamTest() override {
    server_->Shutdown(std::chrono::system_clock::now() + 1s);
    loop_->post([this] { loop_->stop(); });
  }

  static asio::awaitable<void> play(std::string sandbox_id, StatsSampler::Write write,
                                    std::function<void(Result<>)> done) {
    for (int i = 0; i < 2; ++i) {
      v1::SandboxStats stats;
      stats.set_sandbox_id(sandbox_id);
      stats.add_containers()->set_pids(static_cast<std::uint64_t>(i));
      co_await write(std::move(stats));
    }
    done({});
  }

  // The number of responses, or what is wrong.
  std::pair<int, grpc::Status> watch(const v1::WatchStatsRequest& request) {
    grpc::ClientContext context;
    auto reader = stub_->WatchStats(&context, request);
    int responses = 0;
    v1::WatchStatsResponse response;
    while (reader->Read(&response)) {
      EXPECT_EQ(response.stats().sandbox_id(), request.sandbox_id());
      EXPECT_EQ(response.stats().containers(0).pids(), static_cast<std::uint64_t>(responses));
      ++responses;
    }
    return {responses, reader->Finish()};
  }

  TempDirectory temp_directory_;
  std::chrono::nanoseconds interval_{0};
  ControlLoop* loop_ = nullptr;
  TaskGroup* tasks_ = nullptr;
  std::jthread thread_;
  std::unique_ptr<StatsService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::SandboxService::Stub> stub_;
};

TEST_F(StatsStreamTest, SendsEveryMeasurement) {
  v1::WatchStatsRequest request;
  request.set_sandbox_id("box");
  auto [responses, status] = watch(request);
  EXPECT_EQ(responses, 2);
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(interval_, 1s);
  request.mutable_interval()->set_seconds(59);
  request.mutable_interval()->set_nanos(5);
  EXPECT_TRUE(watch(request).second.ok());
  EXPECT_EQ(interval_, 59s + 5ns);
}

TEST_F(StatsStreamTest, RefusesOtherIntervals) {
  for (const auto& [seconds, nanos] : std::vector<std::pair<std::int64_t, std::int32_t>>{
           {0, 0}, {0, 999'999'999}, {-1, 0}, {60, 1}, {61, 0}, {1, -1}, {1, 1'000'000'000}}) {
    v1::WatchStatsRequest request;
    request.mutable_interval()->set_seconds(seconds);
    request.mutable_interval()->set_nanos(nanos);
    const auto [responses, status] = watch(request);
    EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT) << seconds << " " << nanos;
    EXPECT_THAT(status.error_message(), HasSubstr("interval must be between 1 s and 60 s"));
  }
}

}  // namespace
}  // namespace agbox
