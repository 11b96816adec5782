// SPDX-License-Identifier: Apache-2.0
#include "base/thread_checker.h"

#include <gtest/gtest.h>

#include <thread>

namespace agbox {
namespace {

class Owned {
 public:
  void call() const { AGBOX_ON_ITS_THREAD(thread_); }

 private:
  ThreadChecker thread_;
};

TEST(ThreadChecker, KnowsTheCreatingThread) {
  const ThreadChecker checker;
  EXPECT_TRUE(checker.is_current());
  bool is_current_there = true;
  std::thread([&] { is_current_there = checker.is_current(); }).join();
  EXPECT_FALSE(is_current_there);
}

TEST(ThreadCheckerDeathTest, ACallFromAnotherThreadAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Owned owned;
  owned.call();
  EXPECT_DEATH(std::thread([&] { owned.call(); }).join(), "called on another thread");
}

}  // namespace
}  // namespace agbox
