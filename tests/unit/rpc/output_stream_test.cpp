// SPDX-License-Identifier: Apache-2.0
// ReadExecOutput behind a real gRPC server, on real files; the test plays the exec.
#include "rpc/output_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "model/reasons.h"
#include "rpc/status.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

using Base = v1::SandboxService::WithRawCallbackMethod_ReadExecOutput<v1::SandboxService::Service>;

class OutputService final : public Base {
 public:
  OutputService(ControlLoop& control, OutputLoop& output, OutputStream::FindSource find)
      : control_(control), output_(output), find_(std::move(find)) {}
  grpc::ServerWriteReactor<grpc::ByteBuffer>* ReadExecOutput(
      grpc::CallbackServerContext*, const grpc::ByteBuffer* request) override {
    return OutputStream::open(control_, output_, find_, streams_, *request);
  }
  void end_streams(const grpc::Status& status) {
    output_.post([streams = streams_, status] { streams->end_all(status); });
  }

 private:
  ControlLoop& control_;
  OutputLoop& output_;
  OutputStream::FindSource find_;
  std::shared_ptr<OpenStreams> streams_ = std::make_shared<OpenStreams>();
};

class OutputStreamTest : public testing::Test {
 protected:
  OutputStreamTest() {
    std::filesystem::create_directory(temp_directory_.path() / "box-1");
    append(v1::OUTPUT_STREAM_STDOUT, "");
    append(v1::OUTPUT_STREAM_STDERR, "");
    std::promise<void> started;
    auto is_started = started.get_future();
    control_thread_ = std::jthread([this, started = std::move(started)]() mutable {
      ControlLoop loop;
      loop_ = &loop;
      started.set_value();
      loop.run();
    });
    is_started.wait();
    service_ = std::make_unique<OutputService>(
        *loop_, output_, [this](const std::string& id, OnExecEnd on_end, const auto& reply) {
          reply(find(id, std::move(on_end)));
        });
    grpc::ServerBuilder builder;
    const std::string socket = "unix:" + (temp_directory_.path() / "sock").string();
    builder.AddListeningPort(socket, grpc::InsecureServerCredentials());
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    stub_ = v1::SandboxService::NewStub(
        grpc::CreateChannel(socket, grpc::InsecureChannelCredentials()));
  }
  ~OutputStreamTest() override {
    shut_down();
    loop_->post([this] { loop_->stop(); });
  }

  void shut_down() { server_->Shutdown(std::chrono::system_clock::now() + 100ms); }

  std::filesystem::path path(v1::OutputStream stream) const {
    return temp_directory_.path() / "box-1" / (stream == v1::OUTPUT_STREAM_STDOUT ? "out" : "err");
  }

  void append(v1::OutputStream stream, std::string_view text) const {
    const UniqueFd fd(
        ::open(path(stream).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_TRUE(fd);
    ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  // On the control thread.
  Result<ExecOutputSource> find(const std::string& exec_id, OnExecEnd on_end) {
    if (exec_id != "exec-1") {
      return fail(reason::kExecNotFound, "exec " + exec_id + " was not found",
                  {{"exec_id", exec_id}});
    }
    ExecOutputSource source{.root = temp_directory_.path(),
                            .stdout_path = path(v1::OUTPUT_STREAM_STDOUT),
                            .stderr_path = path(v1::OUTPUT_STREAM_STDERR),
                            .is_terminal = is_terminal_,
                            .on_end = nullptr};
    if (!is_terminal_) {
      source.on_end = std::make_shared<const OnExecEnd>(std::move(on_end));
      waiting_.push_back(source.on_end);
    }
    return source;
  }

  void end_exec() {
    std::promise<void> done;
    loop_->post([&] {
      is_terminal_ = true;
      for (const auto& waiting : waiting_) {
        if (const auto on_end = waiting.lock()) (*on_end)();
      }
      done.set_value();
    });
    done.get_future().wait();
  }

  // How many readers still wait for the end.
  std::size_t waiting() {
    std::promise<std::size_t> count;
    loop_->post([&] {
      std::erase_if(waiting_, [](const auto& each) { return each.expired(); });
      count.set_value(waiting_.size());
    });
    return count.get_future().get();
  }

  struct Call {
    Call(v1::SandboxService::Stub& stub, const v1::ReadExecOutputRequest& request)
        : reader(stub.ReadExecOutput(&context, request)) {}

    // The next `size` bytes, or fewer at the end.
    std::string read(std::size_t size) {
      std::string text;
      v1::ReadExecOutputResponse response;
      while (text.size() < size && reader->Read(&response)) {
        EXPECT_EQ(response.offset(), next);
        next += response.data().size();
        text += response.data();
      }
      return text;
    }
    std::string rest() { return read(std::string::npos); }
    grpc::Status end() { return reader->Finish(); }

    grpc::ClientContext context;
    std::uint64_t next = 0;
    std::unique_ptr<grpc::ClientReader<v1::ReadExecOutputResponse>> reader;
  };

  std::unique_ptr<Call> call(v1::OutputStream stream, bool follow, std::uint64_t offset = 0,
                             const std::string& exec_id = "exec-1") {
    v1::ReadExecOutputRequest request;
    request.set_exec_id(exec_id);
    request.set_stream(stream);
    request.set_follow(follow);
    request.set_offset(offset);
    auto made = std::make_unique<Call>(*stub_, request);
    made->next = offset;
    return made;
  }

  grpc::Status refusal(v1::OutputStream stream, std::uint64_t offset = 0,
                       const std::string& exec_id = "exec-1") {
    const auto refused = call(stream, false, offset, exec_id);
    EXPECT_EQ(refused->rest(), "");
    return refused->end();
  }

  TempDirectory temp_directory_;
  ControlLoop* loop_ = nullptr;
  bool is_terminal_ = false;                             // control thread only
  std::vector<std::weak_ptr<const OnExecEnd>> waiting_;  // control thread only
  static constexpr std::size_t kMostReaders = 12;
  OutputLoop output_{kMostReaders};
  std::jthread control_thread_;
  std::unique_ptr<OutputService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::SandboxService::Stub> stub_;
};

constexpr auto kOut = v1::OUTPUT_STREAM_STDOUT;
constexpr auto kErr = v1::OUTPUT_STREAM_STDERR;

TEST_F(OutputStreamTest, AnEndedStreamHasItsStatusAfterWhatWasSent) {
  append(kOut, "out");
  const auto followed = call(kOut, true);
  EXPECT_EQ(followed->read(3), "out");
  service_->end_streams({grpc::StatusCode::UNAVAILABLE, "the end"});
  EXPECT_EQ(followed->rest(), "");
  EXPECT_EQ(followed->end().error_message(), "the end");
  const auto late = call(kOut, true);
  EXPECT_EQ(late->rest(), "");
  EXPECT_EQ(late->end().error_message(), "the end");
}

TEST_F(OutputStreamTest, StreamsAreSeparate) {
  append(kOut, std::string("out\0\xff", 5));
  append(kErr, "err");
  const auto out = call(kOut, false);
  EXPECT_EQ(out->rest(), std::string("out\0\xff", 5));
  EXPECT_TRUE(out->end().ok());
  EXPECT_EQ(call(kErr, false)->rest(), "err");
  EXPECT_EQ(call(kErr, false, 1)->rest(), "rr");
}

TEST_F(OutputStreamTest, RefusalsHaveTheirCodes) {
  EXPECT_EQ(refusal(v1::OUTPUT_STREAM_UNSPECIFIED).error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(refusal(v1::OUTPUT_STREAM_UNSPECIFIED).error_message(), HasSubstr("stream must be"));
  EXPECT_EQ(refusal(static_cast<v1::OutputStream>(9)).error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(refusal(kOut, 0, "exec-9").error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(refusal(kOut, 1).error_code(), grpc::OUT_OF_RANGE);
  std::filesystem::remove(path(kOut));
  EXPECT_EQ(refusal(kOut).error_code(), grpc::DATA_LOSS);
}

TEST_F(OutputStreamTest, AFollowerGetsEveryByteAndThenTheEnd) {
  const auto follower = call(kOut, true);
  append(kOut, "one");
  EXPECT_EQ(follower->read(3), "one");
  append(kOut, "two");
  EXPECT_EQ(follower->read(3), "two");
  append(kOut, "three");
  end_exec();
  EXPECT_EQ(follower->rest(), "three");
  EXPECT_TRUE(follower->end().ok());
  const auto late = call(kOut, true, 6);
  EXPECT_EQ(late->rest(), "three");
  EXPECT_TRUE(late->end().ok());
}

TEST_F(OutputStreamTest, TenReadersAgreeThoughFiveStall) {
  std::vector<std::unique_ptr<Call>> readers;
  readers.reserve(10);
  for (int i = 0; i < 10; ++i) readers.push_back(call(kOut, true));
  std::string written;
  for (int i = 0; i < 64; ++i) written += std::string(1 << 17, static_cast<char>(i));
  std::vector<std::future<std::string>> eager;
  eager.reserve(5);
  for (std::size_t i = 0; i < 5; ++i) {
    eager.push_back(std::async(std::launch::async, [&readers, i] { return readers[i]->rest(); }));
  }
  // The other five are not read: the writer and other readers are not affected.
  for (std::size_t at = 0; at < written.size(); at += 1 << 16) {
    append(kOut, std::string_view(written).substr(at, 1 << 16));
  }
  end_exec();
  for (auto& each : eager) EXPECT_TRUE(each.get() == written);
  for (std::size_t i = 5; i < 10; ++i) EXPECT_TRUE(readers[i]->rest() == written);
  for (const auto& each : readers) EXPECT_TRUE(each->end().ok());
}

TEST_F(OutputStreamTest, ConcurrentReadersAreLimited) {
  append(kOut, "x");
  std::vector<std::unique_ptr<Call>> readers;
  for (std::size_t i = 0; i < kMostReaders; ++i) {
    readers.push_back(call(kOut, true));
    ASSERT_EQ(readers.back()->read(1), "x");
  }
  const auto refused = call(kOut, false);
  EXPECT_EQ(refused->rest(), "");
  const grpc::Status status = refused->end();
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("at most 12 are possible"));
  end_exec();
  for (const auto& reader : readers) {
    EXPECT_EQ(reader->rest(), "");
    EXPECT_TRUE(reader->end().ok());
  }
  EXPECT_EQ(call(kOut, false)->rest(), "x");
}

TEST_F(OutputStreamTest, ADisconnectedReaderIsForgotten) {
  auto leaving = call(kOut, true);
  append(kOut, "x");
  EXPECT_EQ(leaving->read(1), "x");
  EXPECT_EQ(waiting(), 1);
  leaving->context.TryCancel();
  EXPECT_EQ(leaving->rest(), "");
  EXPECT_EQ(leaving->end().error_code(), grpc::CANCELLED);
  // The server learns of it after the client: shutdown waits for that.
  shut_down();
  EXPECT_EQ(waiting(), 0);
}

TEST_F(OutputStreamTest, AShutdownEndsWaitingAndUnreadStreams) {
  append(kErr, std::string(16 << 20, 'x'));
  const auto waits = call(kOut, true);
  const auto stalls = call(kErr, true);
  append(kOut, "x");
  EXPECT_EQ(waits->read(1), "x");
  EXPECT_EQ(stalls->read(1).front(), 'x');
  const auto began = std::chrono::steady_clock::now();
  shut_down();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  EXPECT_EQ(waits->rest(), "");
  EXPECT_FALSE(waits->end().ok());
  static_cast<void>(stalls->rest());
  EXPECT_FALSE(stalls->end().ok());
}

TEST_F(OutputStreamTest, ARemovedLogEndsItsFollower) {
  const auto follower = call(kOut, true);
  append(kOut, "x");
  EXPECT_EQ(follower->read(1), "x");
  std::filesystem::remove(path(kOut));
  EXPECT_EQ(follower->rest(), "");
  EXPECT_EQ(follower->end().error_code(), grpc::DATA_LOSS);
}

TEST_F(OutputStreamTest, AnInvalidRequestIsRefused) {
  grpc::GenericStub generic(grpc::CreateChannel(
      "unix:" + (temp_directory_.path() / "sock").string(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const grpc::Slice nonsense("\xff\xff\xff\xff");
  const grpc::ByteBuffer request(&nonsense, 1);
  grpc::CompletionQueue queue;
  auto rpc = generic.PrepareUnaryCall(&context, "/agbox.v1.SandboxService/ReadExecOutput", request,
                                      &queue);
  rpc->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  rpc->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  queue.Shutdown();
  EXPECT_FALSE(queue.Next(&tag, &ok));
}

}  // namespace
}  // namespace agbox
