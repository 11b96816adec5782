// SPDX-License-Identifier: Apache-2.0
// Commands that end at once, in one container: through agboxd, through the engine's exec API, and
// through the `docker` program.
//
//   exec_bench alone ROUNDS DAEMON_SOCKET SANDBOX ENGINE_SOCKET CONTAINER
//       milliseconds from CreateExec sent to the terminal event received, and what the same command
//       takes through the engine, to its exit code
//   exec_bench crowd ROUNDS DAEMON_SOCKET SANDBOX ENGINE_SOCKET CONTAINER AT_ONCE EXECS
//   ENGINE_EXECS
//       execs per second with AT_ONCE of them under way: EXECS through agboxd, ENGINE_EXECS through
//       each of the others
//   exec_bench ours EXECS DAEMON_SOCKET SANDBOX [AT_ONCE]
//   exec_bench engine EXECS ENGINE_SOCKET CONTAINER
//       EXECS through agboxd or through the engine's API, one after another unless AT_ONCE is
//       given, without timing them: for a profiler, and for the CPU time that they cost
#include <grpcpp/grpcpp.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agbox/v1/service.grpc.pb.h"
#include "arms.h"

namespace {

namespace v1 = agbox::v1;
using agbox::bench::Arm;
using agbox::bench::give_up;
using agbox::bench::Measured;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kCommand = "true";
constexpr auto kPatience = std::chrono::hours(1);

void must(const grpc::Status& status, const std::string& what) {
  if (!status.ok()) give_up(what + ": " + status.error_message());
}

double milliseconds_since(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

// A client of agboxd with one stream of its sandbox's events, which is open all the time.
class Ours {
 public:
  Ours(const std::string& socket, std::string sandbox_id)
      : sandbox_id_(std::move(sandbox_id)),
        stub_(v1::SandboxService::NewStub(
            grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()))) {
    v1::GetSandboxRequest get;
    get.set_sandbox_id(sandbox_id_);
    v1::GetSandboxResponse sandbox;
    grpc::ClientContext get_context;
    must(stub_->GetSandbox(&get_context, get, &sandbox), "get " + sandbox_id_);
    v1::SubscribeSandboxEventsRequest subscribe;
    subscribe.set_sandbox_id(sandbox_id_);
    subscribe.set_from_sequence(sandbox.sandbox().last_event_sequence());
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    stream_ = stub_->SubscribeSandboxEvents(&context_, subscribe);
    stream_->WaitForInitialMetadata();
  }
  ~Ours() {
    context_.TryCancel();
    stream_->Finish();
  }
  Ours(const Ours&) = delete;
  Ours& operator=(const Ours&) = delete;

  double alone() {
    const auto began = Clock::now();
    start();
    wait_for_an_end();
    return milliseconds_since(began);
  }

  double per_second(int at_once, int count) {
    const auto began = Clock::now();
    for (int i = 0; i < at_once; ++i) start();
    for (int ended = 0; ended < count; ++ended) {
      wait_for_an_end();
      if (ended + at_once < count) start();
    }
    return 1000 * count / milliseconds_since(began);
  }

 private:
  struct Call {
    grpc::ClientContext context;
    v1::CreateExecRequest request;
    v1::CreateExecResponse response;
    std::atomic<bool> is_answered = false;
  };

  // Asked for without waiting, so that the reader is reading when the events come.
  void start() {
    const std::string exec_id =
        "bench-" + std::to_string(::getpid()) + "-" + std::to_string(++count_);
    auto& call = calls_.emplace(exec_id, std::make_unique<Call>()).first->second;
    call->request.set_sandbox_id(sandbox_id_);
    call->request.set_exec_id(exec_id);
    call->request.add_command(std::string(kCommand));
    stub_->async()->CreateExec(&call->context, &call->request, &call->response,
                               [call = call.get()](const grpc::Status& status) {
                                 must(status, "exec " + call->request.exec_id());
                                 call->is_answered = true;
                                 call->is_answered.notify_one();
                               });
  }

  void wait_for_an_end() {
    v1::SandboxEvent event;
    do {
      if (!stream_->Read(&event)) must(stream_->Finish(), "follow " + sandbox_id_);
    } while (!event.has_exec() || event.exec().exec_state() == v1::EXEC_STATE_RUNNING);
    if (event.exec().exec_state() != v1::EXEC_STATE_FINISHED) {
      give_up("exec " + event.exec().exec_id() + ": " + event.exec().error_message());
    }
    const auto call = calls_.find(event.exec().exec_id());
    if (call == calls_.end()) give_up("exec " + event.exec().exec_id() + " ended twice");
    call->second->is_answered.wait(false);
    calls_.erase(call);
  }

  const std::string sandbox_id_;
  std::unique_ptr<v1::SandboxService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::SandboxEvent>> stream_;
  std::unordered_map<std::string, std::unique_ptr<Call>> calls_;
  std::uint64_t count_ = 0;
};

// The engine's exec API over one connection that is kept alive, with as little HTTP as that takes.
// The engine takes over the connection of a start for the command's output and closes it, so the
// next call opens another.
class Engine {
 public:
  Engine(std::string socket, std::string container)
      : socket_(std::move(socket)), container_(std::move(container)) {}
  ~Engine() { disconnect(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void run() {
    const std::string made =
        call("POST", "/containers/" + container_ + "/exec",
             R"({"AttachStdout": true, "AttachStderr": true, "User": "agbox", "Cmd": [")" +
                 std::string(kCommand) + R"("]})");
    const std::string key = R"("Id":")";
    const std::size_t id = made.find(key);
    if (id == std::string::npos) give_up("the engine made no exec: " + made);
    const std::string path = "/exec/" + made.substr(id + key.size(), 64);
    call("POST", path + "/start", R"({"Detach": false, "Tty": false})");
    const std::string ended = call("GET", path + "/json", "");
    if (!ended.contains(R"("ExitCode":0)")) give_up("an exec through the engine: " + ended);
  }

 private:
  std::string call(const std::string& method, const std::string& path, const std::string& body) {
    if (connection_ < 0) connect();
    const std::string request = method + " " + path +
                                " HTTP/1.1\r\nHost: engine\r\n"
                                "Content-Type: application/json\r\nContent-Length: " +
                                std::to_string(body.size()) + "\r\n\r\n" + body;
    if (::send(connection_, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size())) {
      give_up(method + " " + path + ": " + std::strerror(errno));
    }
    const std::string answer = receive();
    if (!answer.starts_with("HTTP/1.1 2")) give_up(method + " " + path + ": " + answer);
    return answer;
  }

  // One whole answer; one without a length lasts until the engine closes the connection.
  std::string receive() {
    std::string answer;
    std::array<char, 4096> piece;
    std::size_t end = std::string::npos;
    while (answer.size() < end) {
      const ssize_t got = ::read(connection_, piece.data(), piece.size());
      if (got < 0) give_up("read from " + socket_ + ": " + std::strerror(errno));
      if (got == 0) {
        if (end != std::string::npos) give_up("an answer ended early: " + answer);
        disconnect();
        break;
      }
      answer.append(piece.data(), static_cast<std::size_t>(got));
      if (end == std::string::npos) end = end_of(answer);
    }
    return answer;
  }

  static std::size_t end_of(std::string_view answer) {
    constexpr std::string_view kBlankLine = "\r\n\r\n";
    constexpr std::string_view kLength = "\r\nContent-Length: ";
    const std::size_t body = answer.find(kBlankLine);
    if (body == std::string_view::npos) return std::string_view::npos;
    const std::string_view head = answer.substr(0, body);
    if (head.contains("\r\nTransfer-Encoding: ")) give_up("in chunks: " + std::string(answer));
    const std::size_t length = head.find(kLength);
    if (length == std::string_view::npos) return std::string_view::npos;
    return body + kBlankLine.size() + std::stoul(std::string(head.substr(length + kLength.size())));
  }

  void connect() {
    connection_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket_.c_str(), sizeof address.sun_path - 1);
    // The socket API takes every kind of address by this one type.
    if (::connect(connection_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      give_up("connect to " + socket_ + ": " + std::strerror(errno));
    }
  }

  void disconnect() {
    if (connection_ >= 0) ::close(std::exchange(connection_, -1));
  }

  const std::string socket_;
  const std::string container_;
  int connection_ = -1;
};

class DockerProgram {
 public:
  DockerProgram(const std::string& socket, std::string container)
      : host_("unix://" + socket), container_(std::move(container)) {}

  void run() const {
    std::array<std::string, 8> words = {"docker", "-H",    host_,      "exec",
                                        "-u",     "agbox", container_, std::string(kCommand)};
    std::array<char*, 9> arguments{};
    for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
    pid_t pid = 0;
    const int problem = ::posix_spawnp(&pid, "docker", nullptr, nullptr, arguments.data(), environ);
    if (problem != 0) give_up(std::string("docker: ") + std::strerror(problem));
    int status = 0;
    if (::waitpid(pid, &status, 0) != pid || status != 0) {
      give_up("docker exec ended with " + std::to_string(status));
    }
  }

 private:
  const std::string host_;
  const std::string container_;
};

// One before the one that is measured: the arm before it left the caches cold, which costs most
// when there is least to do.
template <class Client>
Measured alone(Client& client) {
  client.run();
  const auto began = Clock::now();
  client.run();
  return {{"ms", milliseconds_since(began)}};
}

// Every worker has a client of its own.
template <class MakeClient>
Measured crowd(const MakeClient& make_client, int at_once, int count) {
  std::atomic<int> left = count;
  const auto began = Clock::now();
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < at_once; ++i) {
      workers.emplace_back([&] {
        auto client = make_client();
        while (left.fetch_sub(1) > 0) client.run();
      });
    }
  }
  return {{"per_second", 1000 * count / milliseconds_since(began)}};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto number = [&](std::size_t index) { return std::stoi(words.at(index)); };
  const std::string mode = words.empty() ? "" : words[0];
  if (mode == "ours" && (words.size() == 4 || words.size() == 5)) {
    Ours(words[2], words[3]).per_second(words.size() == 5 ? number(4) : 1, number(1));
    return 0;
  }
  if (mode == "engine" && words.size() == 4) {
    Engine engine(words[2], words[3]);
    for (int left = number(1); left > 0; --left) engine.run();
    return 0;
  }
  if (!(mode == "alone" && words.size() == 6) && !(mode == "crowd" && words.size() == 9)) {
    std::cerr << "usage: exec_bench alone|crowd|ours|engine ...; see exec_bench.cpp\n";
    return 2;
  }
  Ours ours(words[2], words[3]);
  const auto make_engine = [&] { return Engine(words[4], words[5]); };
  const auto make_docker = [&] { return DockerProgram(words[4], words[5]); };
  if (mode == "alone") {
    auto engine = make_engine();
    auto docker = make_docker();
    agbox::bench::run("execs", number(1),
                      {Arm{"agboxd",
                           [&] {
                             ours.alone();
                             return Measured{{"ms", ours.alone()}};
                           }},
                       Arm{"engine API by hand", [&] { return alone(engine); }},
                       Arm{"docker exec", [&] { return alone(docker); }}});
    return 0;
  }
  const auto through_us = [&] {
    return Measured{{"per_second", ours.per_second(number(6), number(7))}};
  };
  agbox::bench::run(
      "execs", number(1),
      {Arm{"agboxd", through_us},
       Arm{"engine API by hand", [&] { return crowd(make_engine, number(6), number(8)); }},
       Arm{"docker exec", [&] { return crowd(make_docker, number(6), number(8)); }}});
  return 0;
}
