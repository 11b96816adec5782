// SPDX-License-Identifier: Apache-2.0
// Guest links with a loop, a directory and one scripted guest, for stories about what both say.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/uuid.h"
#include "guestlink/guest_link.h"
#include "unit/guestlink/scripted_guest.h"

namespace agbox::guestlink {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

inline GuestLink::Deadline within(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

class GuestLinkTest : public testing::Test {
 protected:
  GuestLinkTest() : guest_(io_.get_executor()) {
    state_root_ = fs::temp_directory_path() / ("agbox-links-" + random_uuid());
    fs::create_directories(state_root_);
    set_log_level(LogLevel::Error);
    limits_.guest_uid = ::geteuid();
    limits_.handshake = 60s;
    limits_.penalty = 10ms;
  }
  ~GuestLinkTest() override {
    stop_daemon();
    fs::remove_all(state_root_);
  }

  void stop_daemon() {
    for (const auto& [id, sandbox] : sandboxes_) rest(id);
    run(tasks_.join());
    sandboxes_.clear();
  }

  // Runs until the story is told; a story that hangs fails.
  void run(awaitable<void> story) {
    bool told = false;
    asio::co_spawn(io_, std::move(story), [&](const std::exception_ptr& failure) {
      told = true;
      if (failure) std::rethrow_exception(failure);
    });
    const auto end = std::chrono::steady_clock::now() + 20s;
    io_.restart();
    while (!told && std::chrono::steady_clock::now() < end) io_.run_one_for(100ms);
    ASSERT_TRUE(told) << "the story hangs";
  }

  // The guest of s1, which is expected.
  awaitable<void> come_in(fs::path temp_directory) {
    EXPECT_TRUE(co_await guest_.arrive(temp_directory));
    EXPECT_TRUE(co_await link("s1").hello(within(5s)));
  }
  // The guest of s1 goes, and the daemon listens for it again.
  awaitable<void> leave(fs::path temp_directory) {
    guest_.close();
    while (!fs::exists(temp_directory / guestwire::kSocketName)) {
      co_await asio::post(io_, asio::use_awaitable);
    }
  }
  // Guests that connect and say nothing.
  awaitable<std::vector<std::unique_ptr<ScriptedGuest>>> connect_many(int count,
                                                                      fs::path temp_directory) {
    std::vector<std::unique_ptr<ScriptedGuest>> crowd;
    for (int i = 0; i < count; ++i) {
      crowd.push_back(std::make_unique<ScriptedGuest>(io_.get_executor()));
      EXPECT_TRUE(co_await crowd.back()->connect(temp_directory));
    }
    co_return crowd;
  }

  GuestLink& link(const std::string& id) { return *sandboxes_.at(id).link; }
  // Its owner closes and releases it, as LocalSandboxPlace does.
  void rest(const std::string& id) {
    if (const auto former = std::exchange(sandboxes_.at(id).link, nullptr)) former->close();
  }
  // The sandbox's directory; with a link that takes `limits_` as they are now.
  fs::path make(const std::string& id) { return open(id, LinkDirectory::make(root(), id).value()); }
  GuestResult<fs::path> adopt(const std::string& id, DirectoryIdentity identity) {
    AGBOX_TRY(directory, LinkDirectory::adopt(root(), id, identity));
    return open(id, std::move(directory));
  }
  fs::path make_and_expect_someone(const std::string& id) {
    fs::path temp_directory = make(id);
    EXPECT_TRUE(link(id).expect(someone()));
    return temp_directory;
  }
  fs::path root() const { return state_root_ / "links"; }
  static Expectation someone() {
    Expectation expectation;
    expectation.uid = 1000;
    expectation.gid = 1000;
    return expectation;
  }
  static Expectation with_secret(const std::string& secret) {
    Expectation expectation = someone();
    expectation.secret = secret;
    return expectation;
  }
  static GoOrder order(const std::string& secret) {
    GoOrder order;
    order.secret = secret;
    return order;
  }

  asio::io_context io_{1};
  fs::path state_root_;
  LinkLimits limits_;
  std::map<std::string, int> connected_;
  std::map<std::string, int> lost_;
  GuestHello last_hello_;
  std::vector<ExecEnd> ended_;
  std::vector<std::string> truncated_;
  std::map<std::string, std::string> not_sent_;  // why, by exec
  // Called after an end was noted, by sandbox.
  std::function<void(const std::string& id)> on_exec_ended_;
  ScriptedGuest guest_;

 private:
  struct Listener final : GuestListener {
    Listener(GuestLinkTest& its_test, std::string its_id) : test(its_test), id(std::move(its_id)) {}
    void guest_connected(const GuestHello& hello) override {
      ++test.connected_[id];
      test.last_hello_ = hello;
    }
    void guest_lost(const std::string&) override { ++test.lost_[id]; }
    void exec_ended(const ExecEnd& end) override {
      test.ended_.push_back(end);
      if (test.on_exec_ended_) test.on_exec_ended_(id);
    }
    void exec_not_sent(const std::string& exec_id, const std::string& why) override {
      test.not_sent_[exec_id] = why;
    }
    void exec_truncated(const std::string& exec_id) override { test.truncated_.push_back(exec_id); }
    GuestLinkTest& test;
    std::string id;
  };
  struct Sandbox {
    std::unique_ptr<Listener> listener;
    std::shared_ptr<GuestLink> link;
  };

  fs::path open(const std::string& id, LinkDirectory directory) {
    if (sandboxes_.contains(id)) rest(id);
    fs::path path = directory.path();
    auto listener = std::make_unique<Listener>(*this, id);
    auto opened = std::make_shared<GuestLink>(io_.get_executor(), std::move(directory), limits_,
                                              *listener, tasks_, Logger());
    sandboxes_[id] = {.listener = std::move(listener), .link = std::move(opened)};
    return path;
  }

  std::map<std::string, Sandbox> sandboxes_;
  TaskGroup tasks_{io_.get_executor()};
};

}  // namespace agbox::guestlink
