// SPDX-License-Identifier: Apache-2.0
// Subscribers, one or a thousand, of agboxd and of the bare echo (echo_server.cpp).
//
//   event_bench latency ROUNDS DAEMON_SOCKET ECHO_SOCKET IMAGE
//       from CreateSandbox to its answer, and from the moment that an event carries to its arrival.
//       IMAGE cannot be pulled: the sandbox fails at once, and deleting it is a change of state
//       that costs the engine nothing
//   event_bench flood ROUNDS DAEMON_SOCKET ECHO_SOCKET SANDBOX SUBSCRIBERS EVENTS
//       deliveries per second, when every subscriber takes EVENTS events
//   event_bench hold|stall SUBSCRIBERS SOCKET SANDBOX FROM_SEQUENCE
//       opens the streams, prints "holding", and keeps them until stdin ends; with "stall" they
//       never read
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agbox/v1/service.grpc.pb.h"
#include "arms.h"

namespace {

namespace v1 = agbox::v1;
using agbox::bench::Arm;
using agbox::bench::give_up;
using agbox::bench::Measured;
using Stub = v1::SandboxService::Stub;

constexpr int kStreamsPerConnection = 50;
constexpr auto kPatience = std::chrono::seconds(120);

void must(const grpc::Status& status, const std::string& what) {
  if (!status.ok()) give_up(what + ": " + status.error_message());
}

std::unique_ptr<Stub> connect(const std::string& socket, int number = 0) {
  grpc::ChannelArguments arguments;
  arguments.SetInt("agbox.bench.connection", number);  // otherwise equal channels share one
  return v1::SandboxService::NewStub(
      grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
}

class Countdown {
 public:
  explicit Countdown(std::size_t left) : left_(left) {}
  void count() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) done_.notify_all();
  }
  void wait(const std::string& what) {
    std::unique_lock lock(mutex_);
    if (!done_.wait_for(lock, kPatience, [&] { return left_ == 0; })) {
      give_up(what + ": " + std::to_string(left_) + " of them did not come");
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::size_t left_;
};

struct Subscription {
  std::string sandbox_id;
  std::uint64_t from_sequence = 0;
  std::uint64_t events = 0;  // to wait for
  bool reads = true;
};

// One stream. Counts `opened` when the server has accepted it, and `received` after the events that
// it waits for.
class Subscriber final : public grpc::ClientReadReactor<v1::SandboxEvent> {
 public:
  Subscriber(Stub& stub, const Subscription& subscription, Countdown& opened, Countdown& received,
             Countdown& ended)
      : left_(subscription.events), opened_(opened), received_(received), ended_(ended) {
    request_.set_sandbox_id(subscription.sandbox_id);
    request_.set_from_sequence(subscription.from_sequence);
    stub.async()->SubscribeSandboxEvents(&context_, &request_, this);
    if (subscription.reads) StartRead(&event_);
    StartCall();
  }
  void cancel() { context_.TryCancel(); }

  void OnReadInitialMetadataDone(bool ok) override {
    if (ok) opened_.count();
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (left_ > 0 && --left_ == 0) return received_.count();
    StartRead(&event_);
  }
  void OnDone(const grpc::Status& status) override {
    if (!status.ok() && status.error_code() != grpc::StatusCode::CANCELLED) {
      must(status, "subscribe " + request_.sandbox_id());
    }
    ended_.count();
  }

 private:
  grpc::ClientContext context_;
  v1::SubscribeSandboxEventsRequest request_;
  v1::SandboxEvent event_;
  std::uint64_t left_;
  Countdown& opened_;
  Countdown& received_;
  Countdown& ended_;
};

class Subscribers {
 public:
  Subscribers(const std::string& socket, const Subscription& subscription, std::size_t count)
      : opened_(count), received_(count), ended_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (i % kStreamsPerConnection == 0) stubs_.push_back(connect(socket, static_cast<int>(i)));
      all_.push_back(
          std::make_unique<Subscriber>(*stubs_.back(), subscription, opened_, received_, ended_));
    }
  }
  ~Subscribers() {
    for (const auto& subscriber : all_) subscriber->cancel();
    ended_.wait("ends of streams");
  }
  void wait_opened() { opened_.wait("streams"); }
  void wait_received() { received_.wait("streams with all their events"); }

 private:
  Countdown opened_, received_, ended_;
  std::vector<std::unique_ptr<Stub>> stubs_;
  std::vector<std::unique_ptr<Subscriber>> all_;
};

double milliseconds_since(const v1::SandboxEvent& event) {
  const auto stamp = std::chrono::seconds(event.occurred_at().seconds()) +
                     std::chrono::nanoseconds(event.occurred_at().nanos());
  const std::chrono::duration<double, std::milli> age =
      std::chrono::system_clock::now().time_since_epoch() - stamp;
  return age.count();
}

// Deletes a sandbox that has failed, and follows it.
Measured daemon_latency(Stub& stub, const std::string& image) {
  v1::CreateSandboxRequest create;
  create.mutable_create_spec()->set_image(image);
  v1::CreateSandboxResponse created;
  grpc::ClientContext create_context;
  const auto sent = std::chrono::steady_clock::now();
  must(stub.CreateSandbox(&create_context, create, &created), "create");
  const std::chrono::duration<double, std::milli> accepting =
      std::chrono::steady_clock::now() - sent;

  v1::SubscribeSandboxEventsRequest subscribe;
  subscribe.set_sandbox_id(created.sandbox().sandbox_id());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto stream = stub.SubscribeSandboxEvents(&context, subscribe);
  v1::SandboxEvent event;
  const auto read_until = [&](v1::EventType type) {
    do {
      if (!stream->Read(&event)) must(stream->Finish(), "follow " + subscribe.sandbox_id());
    } while (event.event_type() != type);
  };
  read_until(v1::SANDBOX_FAILED);

  v1::DeleteSandboxRequest remove;
  remove.set_sandbox_id(subscribe.sandbox_id());
  v1::AcceptedResponse accepted;
  grpc::ClientContext remove_context;
  // Asked for without waiting, so that the reader is reading when the event comes.
  Countdown answered(1);
  grpc::Status answer;
  stub.async()->DeleteSandbox(&remove_context, &remove, &accepted, [&](const grpc::Status& status) {
    answer = status;
    answered.count();
  });
  read_until(v1::SANDBOX_DELETE_REQUESTED);
  const double taken = milliseconds_since(event);
  read_until(v1::SANDBOX_DELETED);
  answered.wait("delete");
  must(answer, "delete");
  context.TryCancel();
  stream->Finish();
  return {{"accepted_ms", accepting.count()}, {"ms", taken}};
}

// The same on the echo: an append to a file, answered; and another, followed.
Measured echo_latency(Stub& stub) {
  v1::SubscribeSandboxEventsRequest subscribe;
  subscribe.set_sandbox_id("live");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto stream = stub.SubscribeSandboxEvents(&context, subscribe);
  stream->WaitForInitialMetadata();
  v1::SandboxEvent event;
  const auto read = [&] {
    if (!stream->Read(&event)) must(stream->Finish(), "follow the echo");
  };
  v1::PingResponse response;
  grpc::ClientContext append_context;
  const auto sent = std::chrono::steady_clock::now();
  must(stub.Ping(&append_context, {}, &response), "ping");
  const std::chrono::duration<double, std::milli> accepting =
      std::chrono::steady_clock::now() - sent;
  read();

  grpc::ClientContext ping_context;
  v1::PingRequest ping;
  Countdown answered(1);
  stub.async()->Ping(&ping_context, &ping, &response, [&](const grpc::Status& status) {
    must(status, "ping");
    answered.count();
  });
  read();
  const double taken = milliseconds_since(event);
  answered.wait("ping");
  context.TryCancel();
  stream->Finish();
  return {{"accepted_ms", accepting.count()}, {"ms", taken}};
}

double deliveries_per_second(const std::string& socket, const Subscription& subscription,
                             std::size_t subscribers) {
  const auto began = std::chrono::steady_clock::now();
  Subscribers all(socket, subscription, subscribers);
  all.wait_received();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
  return static_cast<double>(subscribers * subscription.events) / taken.count();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 5 && words[0] == "latency") {
    const auto daemon = connect(words[2]);
    const auto echo = connect(words[3]);
    agbox::bench::run("events", std::stoi(words[1]),
                      {Arm{"agboxd", [&] { return daemon_latency(*daemon, words[4]); }},
                       Arm{"echo", [&] { return echo_latency(*echo); }}});
    return 0;
  }
  if (words.size() == 7 && words[0] == "flood") {
    const std::size_t subscribers = std::stoul(words[5]);
    const std::uint64_t events = std::stoull(words[6]);
    const auto flood = [&](const std::string& socket, const std::string& sandbox,
                           std::uint64_t from) {
      return Measured{
          {"per_second", deliveries_per_second(socket, {sandbox, from, events}, subscribers)}};
    };
    agbox::bench::run("events", std::stoi(words[1]),
                      {Arm{"agboxd", [&] { return flood(words[2], words[4], 0); }},
                       Arm{"echo", [&] { return flood(words[3], "flood", events); }}});
    return 0;
  }
  if (words.size() == 5 && (words[0] == "hold" || words[0] == "stall")) {
    const Subscription subscription = {.sandbox_id = words[3],
                                       .from_sequence = std::stoull(words[4]),
                                       .reads = words[0] == "hold"};
    Subscribers all(words[2], subscription, std::stoul(words[1]));
    all.wait_opened();
    std::cout << "holding" << std::endl;
    while (std::cin.get() != std::char_traits<char>::eof()) {
    }
    return 0;
  }
  std::cerr << "usage: event_bench latency|flood|hold|stall ...; see event_bench.cpp\n";
  return 2;
}
