// SPDX-License-Identifier: Apache-2.0
#include "support/fake_docker/fake_docker.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <list>

#include "base/check.h"
#include "support/fake_docker/fake_server.h"

namespace agbox {

namespace asio = boost::asio;

template <class Use>
auto FakeDocker::on_loop(Use use) {
  if (!thread_.joinable() || std::this_thread::get_id() == thread_.get_id()) return use();
  std::packaged_task<decltype(use())()> task(std::move(use));
  auto result = task.get_future();
  asio::post(*own_io_, [&task] { task(); });
  return result.get();
}

FakeDocker::FakeDocker(asio::io_context& io) : server_(std::make_shared<fake::Server>(io)) {
  server_->begin();
}

FakeDocker::FakeDocker() : own_io_(std::make_unique<asio::io_context>(1)) {
  server_ = std::make_shared<fake::Server>(*own_io_);
  server_->begin();
  // A thread because a test asked for an engine that lives beside its own loop.
  thread_ =
      std::thread([io = own_io_.get(), guard = asio::make_work_guard(*own_io_)] { io->run(); });
}

FakeDocker::~FakeDocker() {
  on_loop([this] { server_->stop(); });
  if (thread_.joinable()) {
    own_io_->stop();
    thread_.join();
  }
  std::error_code ignored;  // a temporary directory; destructors report nothing
  std::filesystem::remove_all(server_->directory, ignored);
}

const std::string& FakeDocker::socket_path() const {
  return server_->socket_path;
}

fake::Engine& FakeDocker::engine() {
  AGBOX_CHECK(!thread_.joinable(), "with_engine() is for a fake on its own thread");
  return server_->engine;
}

void FakeDocker::with_engine(const std::function<void(fake::Engine&)>& use) {
  on_loop([&] { use(server_->engine); });
}

namespace {

void add(std::list<fake::Fault>& faults, fake::FaultKind kind, std::string_view call, int times,
         int status = 0, std::string_view text = {}) {
  faults.push_back({.kind = kind,
                    .pattern = std::string(call),
                    .times = times,
                    .status = status,
                    .text = std::string(text)});
}

}  // namespace

void FakeDocker::reply(std::string_view call, int status, std::string_view body, int times) {
  on_loop([&] { add(server_->faults, fake::FaultKind::Reply, call, times, status, body); });
}
void FakeDocker::hang(std::string_view call, int times) {
  on_loop([&] { add(server_->faults, fake::FaultKind::Hang, call, times); });
}
void FakeDocker::drop(std::string_view call, int times) {
  on_loop([&] { add(server_->faults, fake::FaultKind::Drop, call, times); });
}
void FakeDocker::lose_answer(std::string_view call, int times) {
  on_loop([&] { add(server_->faults, fake::FaultKind::LoseAnswer, call, times); });
}
void FakeDocker::garble(std::string_view call, std::string_view bytes, int times) {
  on_loop([&] { add(server_->faults, fake::FaultKind::Garble, call, times, 0, bytes); });
}
void FakeDocker::hold(std::string_view call, int times) {
  on_loop([&] {
    server_->released.erase(std::string(call));
    add(server_->faults, fake::FaultKind::Hold, call, times);
  });
}
void FakeDocker::release(std::string_view call) {
  on_loop([&] {
    server_->released.insert(std::string(call));
    server_->faults.remove_if([&](const fake::Fault& fault) {
      return fault.kind == fake::FaultKind::Hold && fault.pattern == call;
    });
    server_->bell.ring();
  });
}
void FakeDocker::clear_faults() {
  on_loop([&] { server_->faults.clear(); });
}

int FakeDocker::calls(std::string_view call) {
  return on_loop([&] {
    int count = 0;
    for (std::size_t i = 0; i < server_->log.size(); ++i) {
      if (fake::matches_glob(call, server_->log[i]) ||
          fake::matches_glob(call, server_->named_log[i])) {
        ++count;
      }
    }
    return count;
  });
}
int FakeDocker::held(std::string_view call) {
  return on_loop([&] {
    return static_cast<int>(std::ranges::count_if(
        server_->held_calls,
        [&](const std::string& seen) { return fake::matches_glob(call, seen); }));
  });
}
int FakeDocker::abandoned(std::string_view call) {
  return on_loop([&] {
    return static_cast<int>(std::ranges::count_if(
        server_->abandoned_calls,
        [&](const std::string& seen) { return fake::matches_glob(call, seen); }));
  });
}
std::vector<std::string> FakeDocker::call_log() {
  return on_loop([&] { return server_->log; });
}
void FakeDocker::forget_calls() {
  on_loop([&] {
    server_->log.clear();
    server_->named_log.clear();
  });
}

int FakeDocker::open_connections() {
  return on_loop([&] { return static_cast<int>(server_->sessions.size()); });
}
int FakeDocker::event_streams() {
  return on_loop([&] {
    return static_cast<int>(std::ranges::count_if(
        server_->sessions, [](const auto& session) { return session->is_event_stream; }));
  });
}
void FakeDocker::stop_listening() {
  on_loop([&] { server_->stop(); });
}
void FakeDocker::listen() {
  on_loop([&] { server_->listen(); });
}
void FakeDocker::drop_event_streams() {
  on_loop([&] {
    boost::system::error_code ignored;
    for (const auto& session : server_->sessions) {
      if (session->is_event_stream) session->socket.close(ignored);
    }
    server_->bell.ring();
  });
}
void FakeDocker::send_raw_event(std::string_view line) {
  on_loop([&] {
    for (const auto& session : server_->sessions) {
      if (session->is_event_stream) session->events.push_back(std::string(line) + "\n");
    }
    server_->bell.ring();
  });
}

std::vector<std::string> FakeDocker::container_names() {
  return on_loop([&] {
    std::vector<std::string> names;
    for (const auto& [id, container] : server_->engine.containers) names.push_back(container.name);
    return names;
  });
}
std::vector<std::string> FakeDocker::network_names() {
  return on_loop([&] {
    std::vector<std::string> names;
    for (const auto& [id, network] : server_->engine.networks) names.push_back(network.name);
    return names;
  });
}

}  // namespace agbox
