// SPDX-License-Identifier: Apache-2.0
// A store in a temporary directory, with callbacks run by the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "store/store.h"
#include "support/manual_clock.h"

namespace agbox {

// Stands in for the control thread: functions are queued until the test runs them.
class Mailbox {
 public:
  Post post() {
    return [this](std::function<void()> function) {
      const std::scoped_lock lock(mutex_);
      functions_.push_back(std::move(function));
      arrived_.notify_one();
    };
  }
  // Runs what arrives until `is_done`.
  void run_until(const std::function<bool()>& is_done) {
    while (!is_done()) {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [&] { return !functions_.empty(); });
      auto function = std::move(functions_.front());
      functions_.pop_front();
      lock.unlock();
      function();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::function<void()>> functions_;
};

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "agbox-store-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    temp_directory_ = pattern;
    path_ = temp_directory_ / "data" / "ids.db";
  }
  ~StoreTest() override {
    store_.reset();
    std::filesystem::remove_all(temp_directory_);
  }

  StoreOptions options() {
    return {.path = path_, .post = mailbox_.post(), .clock = clock_, .ballast_bytes = 64 << 10};
  }
  void open() {
    store_.reset();
    auto opened = Store::open(options());
    ASSERT_TRUE(opened.has_value()) << opened.error().message();
    store_ = std::move(*opened);
  }
  Store& store() { return *store_; }

  // Appends and waits for the answer.
  Result<Committed> append(Change change) {
    std::optional<Result<Committed>> answer;
    store_->append(std::move(change),
                   [&](Result<Committed> result) { answer = std::move(result); });
    mailbox_.run_until([&] { return answer.has_value(); });
    return std::move(*answer);
  }
  Result<Committed> append(Mutation mutation) {
    Change change;
    change.mutations.push_back(std::move(mutation));
    return append(std::move(change));
  }
  Result<EventPage> events(const std::string& sandbox_id, std::uint64_t after = 0,
                           std::size_t count = 1000, std::size_t bytes = 1 << 20) {
    std::optional<Result<EventPage>> answer;
    store_->read_events(sandbox_id, after, count, bytes,
                        [&](Result<EventPage> page) { answer = std::move(page); });
    mailbox_.run_until([&] { return answer.has_value(); });
    return std::move(*answer);
  }
  template <class T>
  Result<T> ask(const std::function<void(std::function<void(Result<T>)>)>& question) {
    std::optional<Result<T>> answer;
    question([&](Result<T> result) { answer = std::move(result); });
    mailbox_.run_until([&] { return answer.has_value(); });
    return std::move(*answer);
  }

  change::CreateSandbox create(const std::string& id) {
    change::CreateSandbox create;
    create.sandbox_id = id;
    create.created_at = clock_.wall_now();
    create.status.changed_at = clock_.wall_now();
    create.operation = {.operation = Operation::Creating, .reason = "", .attempts = 1};
    create.spec.set_image("image-of-" + id);
    create.created_with.set_engine_id("engine");
    return create;
  }
  change::AppendEvent event(const std::string& id, v1::EventType type = v1::SANDBOX_PREPARING) {
    change::AppendEvent append;
    append.event.set_sandbox_id(id);
    append.event.set_event_type(type);
    append.event.set_sandbox_state(v1::SANDBOX_STATE_PENDING);
    append.event.mutable_occurred_at()->set_seconds(clock_.wall_now().time_since_epoch() /
                                                    std::chrono::seconds(1));
    return append;
  }
  change::CreateExec exec(const std::string& sandbox_id, const std::string& exec_id) {
    change::CreateExec create;
    create.request.set_sandbox_id(sandbox_id);
    create.request.set_exec_id(exec_id);
    create.request.add_command("true");
    create.record.set_stdout_log_path("/logs/" + exec_id + ".stdout.log");
    create.record.mutable_started_at()->set_seconds(1'700'000'000);
    return create;
  }

  std::filesystem::path temp_directory_;
  std::filesystem::path path_;
  ManualClock clock_;
  Mailbox mailbox_;
  std::unique_ptr<Store> store_;
};

}  // namespace agbox
