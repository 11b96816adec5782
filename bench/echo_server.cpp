// SPDX-License-Identifier: Apache-2.0
// The least that a gRPC server can be: callback methods, no store, no listener of its own. What the
// daemon is measured against where no other daemon is at hand.
//
//   echo_server SOCKET     serves on the Unix socket until SIGTERM; prints "listening" once
//
// Ping answers, and sends one event to every stream "live", once it is on disk in SOCKET.log. The
// other streams, by the sandbox_id of their request: "idle" stays silent, "poll" looks for news
// every 10 ms as a server without wake-ups has to, "flood" sends from_sequence events as fast as
// its client takes them, and ends.
#include <fcntl.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "agbox/v1/service.grpc.pb.h"

namespace {

using agbox::v1::SandboxEvent;

constexpr auto kPollInterval = std::chrono::milliseconds(10);

// As long as a real one, so that both arms carry the same bytes.
SandboxEvent make_event(std::uint64_t sequence) {
  SandboxEvent event;
  event.set_event_id("00000000-0000-0000-0000-000000000000");
  event.set_sandbox_id("generated-sandbox-0");
  event.set_sequence(sequence);
  event.set_event_type(agbox::v1::EXEC_STARTED);
  event.set_sandbox_state(agbox::v1::SANDBOX_STATE_READY);
  event.mutable_exec()->set_exec_id("exec-of-generated-sandbox-0-0");
  event.mutable_exec()->set_exec_state(agbox::v1::EXEC_STATE_RUNNING);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  event.mutable_occurred_at()->set_seconds(now / std::chrono::seconds(1));
  event.mutable_occurred_at()->set_nanos(
      static_cast<std::int32_t>((now % std::chrono::seconds(1)) / std::chrono::nanoseconds(1)));
  return event;
}

class Stream : public grpc::ServerWriteReactor<SandboxEvent> {
 public:
  Stream() { StartSendInitialMetadata(); }
  void OnCancel() override { finish_once(); }
  void OnDone() override { delete this; }

 protected:
  void finish_once() {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(has_finished_, true)) Finish(grpc::Status::OK);
  }

 private:
  std::mutex mutex_;
  bool has_finished_ = false;
};

class FloodStream final : public Stream {
 public:
  explicit FloodStream(std::uint64_t events) : event_(make_event(1)), left_(events) { write(); }
  void OnWriteDone(bool ok) override { ok ? write() : finish_once(); }

 private:
  void write() {
    if (left_-- == 0) return finish_once();
    StartWrite(&event_);
  }
  SandboxEvent event_;
  std::uint64_t left_;
};

class PollStream final : public Stream {
 public:
  PollStream() { wait(); }
  void OnCancel() override {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    alarm_.Cancel();
  }

 private:
  void wait() {
    alarm_.Set(std::chrono::system_clock::now() + kPollInterval, [this](bool) { look(); });
  }
  void look() {
    {
      const std::lock_guard lock(mutex_);
      if (!is_cancelled_) return wait();  // there is never any news
    }
    finish_once();
  }
  std::mutex mutex_;
  bool is_cancelled_ = false;
  grpc::Alarm alarm_;
};

class LiveStream;

class LiveStreams {
 public:
  explicit LiveStreams(const std::string& log_path)
      : log_(::open(log_path.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600)) {}
  ~LiveStreams() { ::close(log_); }
  void add(LiveStream* stream) {
    const std::lock_guard lock(mutex_);
    streams_.push_back(stream);
  }
  void remove(LiveStream* stream) {
    const std::lock_guard lock(mutex_);
    std::erase(streams_, stream);
  }
  void publish();

 private:
  const int log_;
  std::mutex mutex_;
  std::vector<LiveStream*> streams_;
  std::uint64_t sequence_ = 0;
};

// Its client waits for each event before it asks for the next, so one write is in flight at most.
class LiveStream final : public Stream {
 public:
  explicit LiveStream(LiveStreams& all) : all_(all) { all_.add(this); }
  void publish(const SandboxEvent& event) {
    event_ = event;
    StartWrite(&event_);
  }
  void OnCancel() override {
    all_.remove(this);
    Stream::OnCancel();
  }

 private:
  LiveStreams& all_;
  SandboxEvent event_;
};

void LiveStreams::publish() {
  const std::lock_guard lock(mutex_);
  if (streams_.empty()) return;
  const SandboxEvent event = make_event(++sequence_);
  const std::string bytes = event.SerializeAsString();
  if (::write(log_, bytes.data(), bytes.size()) < 0 || ::fdatasync(log_) != 0) {
    std::cerr << "echo_server: cannot write its log\n";
    std::exit(1);
  }
  for (LiveStream* stream : streams_) stream->publish(event);
}

class EchoService final : public agbox::v1::SandboxService::CallbackService {
 public:
  explicit EchoService(const std::string& log_path) : live_(log_path) {}

 private:
  grpc::ServerUnaryReactor* Ping(grpc::CallbackServerContext* context,
                                 const agbox::v1::PingRequest*,
                                 agbox::v1::PingResponse* response) override {
    response->set_version("0.0.0");
    response->set_daemon("echo");
    response->set_instance_id("00000000-0000-0000-0000-000000000000");
    live_.publish();
    auto* call = context->DefaultReactor();
    call->Finish(grpc::Status::OK);
    return call;
  }

  grpc::ServerWriteReactor<SandboxEvent>* SubscribeSandboxEvents(
      grpc::CallbackServerContext*,
      const agbox::v1::SubscribeSandboxEventsRequest* request) override {
    if (request->sandbox_id() == "flood") return new FloodStream(request->from_sequence());
    if (request->sandbox_id() == "poll") return new PollStream();
    if (request->sandbox_id() == "live") return new LiveStream(live_);
    return new Stream();
  }

  LiveStreams live_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: echo_server SOCKET\n";
    return 2;
  }
  // Blocked before gRPC makes its threads, so that only sigwait() below sees them.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ending, nullptr);

  EchoService service(std::string(argv[1]) + ".log");
  grpc::ServerBuilder builder;
  builder.AddListeningPort(std::string("unix:") + argv[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) {
    std::cerr << "echo_server: cannot listen on " << argv[1] << "\n";
    return 1;
  }
  std::cout << "listening" << std::endl;
  int signal_number = 0;
  sigwait(&ending, &signal_number);
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}
