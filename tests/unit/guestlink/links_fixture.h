// SPDX-License-Identifier: Apache-2.0
// GuestLinks with a loop, a folder and one scripted guest, for stories about what both say.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/uuid.h"
#include "guestlink/guest_links.h"
#include "unit/guestlink/scripted_guest.h"

namespace agbox::guestlink {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

inline GuestLinks::Deadline within(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

class GuestLinksTest : public testing::Test {
 protected:
  GuestLinksTest() : guest_(io_.get_executor()) {
    state_root_ = fs::temp_directory_path() / ("agbox-links-" + random_uuid());
    fs::create_directories(state_root_);
    set_log_level(LogLevel::Error);
    limits_.guest_uid = ::geteuid();
    limits_.handshake = 60s;
    limits_.penalty = 10ms;
    start_daemon();
  }
  ~GuestLinksTest() override {
    stop_daemon();
    fs::remove_all(state_root_);
  }

  void start_daemon() {
    GuestLinksEvents events{
        .connected =
            [this](const std::string& id, const GuestHello& hello) {
              ++connected_[id];
              last_hello_ = hello;
            },
        .lost = [this](const std::string& id, const std::string&) { ++lost_[id]; },
        .exec_ended = [this](const std::string&, const ExecEnd& end) { ended_.push_back(end); },
        .exec_truncated = [this](const std::string&,
                                 const std::string& id) { truncated_.push_back(id); }};
    links_.emplace(io_.get_executor(), io_.get_executor(), state_root_ / "links", events, Logger(),
                   limits_);
  }
  void stop_daemon() {
    if (!links_) return;
    run(links_->shutdown());
    links_.reset();
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

  void forget(const std::string& sandbox_id) {
    run([&]() -> awaitable<void> { EXPECT_TRUE(co_await links_->forget(sandbox_id)); }());
  }

  // The guest of s1, which is expected.
  awaitable<void> come_in(fs::path folder) {
    EXPECT_TRUE(co_await guest_.arrive(folder));
    EXPECT_TRUE(co_await links_->hello("s1", within(5s)));
  }
  // The guest of s1 goes, and the daemon listens for it again.
  awaitable<void> leave(fs::path folder) {
    guest_.close();
    while (!fs::exists(folder / guestwire::kSocketName)) {
      co_await asio::post(io_, asio::use_awaitable);
    }
  }
  // Guests that connect and say nothing.
  awaitable<std::vector<std::unique_ptr<ScriptedGuest>>> connect_many(int count, fs::path folder) {
    std::vector<std::unique_ptr<ScriptedGuest>> crowd;
    for (int i = 0; i < count; ++i) {
      crowd.push_back(std::make_unique<ScriptedGuest>(io_.get_executor()));
      EXPECT_TRUE(co_await crowd.back()->connect(folder));
    }
    co_return crowd;
  }

  fs::path make(const std::string& id) { return links_->make(id).value().folder; }
  // By a daemon that has taken `limits_` as they are now.
  fs::path expect_someone_with_new_limits(const std::string& id) {
    stop_daemon();
    start_daemon();
    fs::path folder = make(id);
    EXPECT_TRUE(links_->expect(id, someone()));
    return folder;
  }
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
  std::optional<GuestLinks> links_;
  ScriptedGuest guest_;
};

}  // namespace agbox::guestlink
