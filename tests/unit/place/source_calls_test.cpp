// SPDX-License-Identifier: Apache-2.0
#include "place/local/source_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "support/test_loop.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::StartsWith;

constexpr const char* kHanging = "mount source /net/a";
constexpr const char* kOther = "mount source /net/b";

class SourceCallsTest : public testing::Test {
 protected:
  ~SourceCallsTest() override {
    if (!responds_already_) respond_.set_value();
  }
  void respond() {
    responds_already_ = true;
    respond_.set_value();
  }
  // What finds out first that the disk hangs.
  auto hangs() {
    return [responds = responds_, ended = ended_](InspectedNow& inspected) -> Result<int> {
      inspected.set(kHanging);
      const std::shared_ptr<void> at_end(nullptr, [ended](void*) { ended->set_value(); });
      responds.wait();
      return 1;
    };
  }

  TestLoop loop_;
  std::promise<void> respond_;
  std::shared_future<void> responds_ = respond_.get_future().share();
  std::shared_ptr<std::promise<void>> ended_ = std::make_shared<std::promise<void>>();
  bool responds_already_ = false;
};

TEST_F(SourceCallsTest, WhatIsFoundInTimeIsReturned) {
  SourceCalls calls(loop_.executor(), 60s);
  const auto found = loop_.run(calls.run(
      {kOther}, [](InspectedNow& inspected) -> Result<std::string> { return inspected.name(); }));
  EXPECT_EQ(found, kOther);
  const auto refused = loop_.run(calls.run({kOther}, [](InspectedNow&) -> Result<int> {
    return fail(reason::kInvalidArgument, "it is not possible");
  }));
  EXPECT_EQ(refused.error().message(), "it is not possible");
}

TEST_F(SourceCallsTest, WhatHangsIsNamedAndNotTriedAgainUntilItResponds) {
  SourceCalls calls(loop_.executor(), 0s);  // whatever has not ended yet hangs
  const auto refused = loop_.run(calls.run({kHanging, kOther}, hangs()));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kHostNotReady);
  EXPECT_THAT(refused.error().message(),
              StartsWith(std::string(kHanging) + " has not been inspected within"));

  bool is_tried = false;
  const auto again = loop_.run(calls.run({kOther, kHanging}, [&](InspectedNow&) -> Result<int> {
    is_tried = true;
    return 2;
  }));
  EXPECT_FALSE(is_tried);
  EXPECT_EQ(again.error(), refused.error());

  // Only what is in its way waits for it.
  auto has_begun = std::make_shared<std::promise<void>>();
  auto begun = has_begun->get_future();
  static_cast<void>(loop_.run(calls.run({kOther}, [has_begun](InspectedNow&) -> Result<int> {
    has_begun->set_value();
    return 3;
  })));
  EXPECT_EQ(begun.wait_for(60s), std::future_status::ready);
}

TEST_F(SourceCallsTest, ACancelledCallerIsNotToldThatADiskHangs) {
  SourceCalls calls(loop_.executor(), 60s);
  auto call = loop_.spawn(calls.run({kHanging}, hangs()));
  loop_.run_until_idle();
  call.cancel();
  loop_.run_until([&] { return call.is_done(); });
  EXPECT_EQ(call.result().error().reason(), reason::kCancelled);
  respond();
  EXPECT_EQ(ended_->get_future().wait_for(60s), std::future_status::ready);
  EXPECT_TRUE(loop_.run(calls.run({kHanging}, [](InspectedNow&) -> Result<int> { return 1; })));
}

}  // namespace
}  // namespace agbox
