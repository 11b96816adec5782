// SPDX-License-Identifier: Apache-2.0
// HoldSandbox behind a real gRPC server; log_stream_test.cpp has what it shares with other streams.
#include "rpc/hold_stream.h"

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

using HoldServiceBase =
    v1::SandboxService::WithRawCallbackMethod_HoldSandbox<v1::SandboxService::Service>;

class HoldService final : public HoldServiceBase {
 public:
  HoldService(ControlLoop& loop, agbox::HoldSandbox hold) : loop_(loop), hold_(std::move(hold)) {}
  grpc::ServerWriteReactor<grpc::ByteBuffer>* HoldSandbox(
      grpc::CallbackServerContext*, const grpc::ByteBuffer* request) override {
    return open_hold_stream(loop_, hold_, streams_, *request);
  }

 private:
  ControlLoop& loop_;
  agbox::HoldSandbox hold_;
  std::shared_ptr<OpenStreams> streams_ = std::make_shared<OpenStreams>();
};

// Sandboxes with a lease of 1.5 s: "kept" is held until its client leaves, any other is deleted at
// once.
class HoldStreamTest : public testing::Test {
 protected:
  HoldStreamTest() {
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
    service_ = std::make_unique<HoldService>(
        *loop_, [this](std::string sandbox_id, Directory::OnHeld on_held,
                       std::function<void(Result<>)> done) {
          return tasks_->spawn("hold", play(std::move(sandbox_id), std::move(on_held), done));
        });
    grpc::ServerBuilder builder;
    const std::string socket = "unix:" + (temp_directory_.path() / "sock").string();
    builder.AddListeningPort(socket, grpc::InsecureServerCredentials());
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = v1::SandboxService::NewStub(
        grpc::CreateChannel(socket, grpc::InsecureChannelCredentials()));
  }
  ~HoldStreamTest() override {
    server_->Shutdown(std::chrono::system_clock::now() + 1s);
    loop_->post([this] { loop_->stop(); });
  }

  asio::awaitable<void> play(std::string sandbox_id, Directory::OnHeld on_held,
                             std::function<void(Result<>)> done) {
    co_await on_held(1500ms);
    Event ended(loop_->io().get_executor());
    if (sandbox_id != "kept") ended.set();
    const bool is_deleted = co_await ended.wait();
    if (!is_deleted) is_released_.set_value();
    done({});
  }

  TempDirectory temp_directory_;
  std::promise<void> is_released_;
  ControlLoop* loop_ = nullptr;
  TaskGroup* tasks_ = nullptr;
  std::jthread thread_;
  std::unique_ptr<HoldService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::SandboxService::Stub> stub_;
};

TEST_F(HoldStreamTest, ConfirmsOnceAndEndsWithTheSandbox) {
  grpc::ClientContext context;
  v1::HoldSandboxRequest request;
  request.set_sandbox_id("box");
  const auto reader = stub_->HoldSandbox(&context, request);
  v1::HoldSandboxResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.lease_ttl().seconds(), 1);
  EXPECT_EQ(response.lease_ttl().nanos(), 500'000'000);
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(HoldStreamTest, AClientThatLeavesReleases) {
  grpc::ClientContext context;
  v1::HoldSandboxRequest request;
  request.set_sandbox_id("kept");
  const auto reader = stub_->HoldSandbox(&context, request);
  v1::HoldSandboxResponse response;
  ASSERT_TRUE(reader->Read(&response));
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::CANCELLED);
  EXPECT_EQ(is_released_.get_future().wait_for(10s), std::future_status::ready);
}

}  // namespace
}  // namespace agbox
