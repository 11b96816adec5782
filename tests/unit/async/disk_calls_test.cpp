// SPDX-License-Identifier: Apache-2.0
#include "async/disk_calls.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "support/test_loop.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A disk that hangs until release.
class HangingDisk {
 public:
  HangingDisk() : responds_(respond_.get_future().share()) {}
  void respond() { respond_.set_value(); }
  auto read(int value) const {
    return [responds = responds_, value] {
      responds.wait();
      return value;
    };
  }

 private:
  std::promise<void> respond_;
  std::shared_future<void> responds_;
};

TEST(DiskCallsTest, ACallRunsElsewhereAndItsValueArrivesHere) {
  TestLoop loop;
  DiskCalls calls(loop.executor(), 1, 1);
  const auto here = std::this_thread::get_id();
  auto call = calls.start(
      [owned = std::make_unique<int>(7)] { return std::pair(std::this_thread::get_id(), *owned); });
  ASSERT_TRUE(call.has_value());
  const auto value = loop.run(call->wait(Clock::now() + 60s));
  ASSERT_TRUE(value.has_value());
  EXPECT_NE(value->first, here);
  EXPECT_EQ(value->second, 7);
}

TEST(DiskCallsTest, ACallThatHangsHoldsUpNoOther) {
  TestLoop loop;
  HangingDisk disk;
  DiskCalls calls(loop.executor(), 1, 2);
  auto hanging = calls.start(disk.read(1));
  auto healthy = calls.start([] { return 2; });
  EXPECT_EQ(loop.run(healthy->wait(Clock::now() + 60s)), 2);
  EXPECT_EQ(loop.run(hanging->wait(Clock::now())), std::nullopt);
  disk.respond();
  EXPECT_EQ(loop.run(hanging->wait(Clock::now() + 60s)), 1) << "it may be waited for again";
}

TEST(DiskCallsTest, ACancelledCallerWaitsNoLonger) {
  TestLoop loop;
  HangingDisk disk;
  DiskCalls calls(loop.executor(), 1, 1);
  auto call = calls.start(disk.read(1));
  auto waiting = loop.spawn(call->wait(Clock::time_point::max()));
  loop.run_until_idle();
  EXPECT_FALSE(waiting.is_done());
  waiting.cancel();
  loop.run_until([&] { return waiting.is_done(); });
  EXPECT_EQ(waiting.result(), std::nullopt);
  disk.respond();
}

TEST(DiskCallsTest, ThoseThatWereGivenUpCountUntilTheyEnd) {
  TestLoop loop;
  HangingDisk disk;
  DiskCalls calls(loop.executor(), 1, 1);
  auto first = calls.start(disk.read(1));
  EXPECT_EQ(loop.run(first->wait(Clock::now())), std::nullopt);
  const auto refused = calls.start([] { return 2; });
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kResourceExhausted);
  disk.respond();
  EXPECT_EQ(loop.run(first->wait(Clock::now() + 60s)), 1);
  auto next = calls.start([] { return 2; });
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(loop.run(next->wait(Clock::now() + 60s)), 2);
}

// Meanwhile this thread may start no other one.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    EXPECT_EQ(::getrlimit(RLIMIT_NPROC, &limit_), 0);
    const rlimit none{.rlim_cur = 0, .rlim_max = limit_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NPROC, &none), 0);
    // The limit does not count for root. setresuid() of the C library changes all threads.
    if (is_root_) EXPECT_EQ(::syscall(SYS_setresuid, kNobody, kNobody, 0), 0);
  }
  ~NoMoreThreads() {
    if (is_root_) EXPECT_EQ(::syscall(SYS_setresuid, 0, 0, 0), 0);
    EXPECT_EQ(::setrlimit(RLIMIT_NPROC, &limit_), 0);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
  const bool is_root_ = ::geteuid() == 0;
  rlimit limit_{};
};

TEST(DiskCallsTest, WhereTheKernelRefusesThreadsThoseThatAreHeldDoTheWork) {
  TestLoop loop;
  DiskCalls calls(loop.executor(), 1, 100);
  HangingDisk disk;
  auto first = calls.start(disk.read(7));
  ASSERT_TRUE(first.has_value());
  std::vector<Result<DiskCall<int>>> others;
  {
    const NoMoreThreads none;
    EXPECT_THROW(std::thread([] {}).join(), std::system_error);
    for (int i = 0; i < 3; ++i) others.push_back(calls.start([i] { return i; }));
  }
  disk.respond();
  EXPECT_EQ(loop.run(first->wait(Clock::now() + 60s)), 7);
  for (int i = 0; i < 3; ++i) {
    auto& other = others.at(static_cast<std::size_t>(i));
    ASSERT_TRUE(other.has_value());
    EXPECT_EQ(loop.run(other->wait(Clock::now() + 60s)), i);
  }
}

// Its thread touches nothing of its former owner, nor of the loop.
TEST(DiskCallsTest, ACallOutlivesItsOwnerAndTheLoop) {
  HangingDisk disk;
  std::promise<void> released;
  struct Released {
    std::promise<void>& promise;
    void operator()(const int* owned) const {
      delete owned;
      promise.set_value();
    }
  };
  {
    TestLoop loop;
    DiskCalls calls(loop.executor(), 1, 1);
    std::unique_ptr<int, Released> owned(new int(7), Released{released});
    std::promise<void> begun;
    const auto call = calls.start([&begun, read = disk.read(1), owned = std::move(owned)] {
      begun.set_value();
      return read() + *owned;
    });
    ASSERT_TRUE(call.has_value());
    begun.get_future().wait();  // what has not begun is dropped
  }
  auto is_released = released.get_future();
  EXPECT_EQ(is_released.wait_for(0s), std::future_status::timeout);
  disk.respond();
  EXPECT_EQ(is_released.wait_for(60s), std::future_status::ready);
}

}  // namespace
}  // namespace agbox
