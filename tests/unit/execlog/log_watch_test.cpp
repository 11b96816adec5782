// SPDX-License-Identifier: Apache-2.0
// Readers that wait for more output while the kernel refuses inotify instances or watches.
#include "execlog/log_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/kernel_budget.h"
#include "unit/temp_directory.h"
#include "unit/without_inotify.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using namespace std::chrono_literals;

class LogWatchTest : public testing::Test {
 protected:
  // Waits until all of them were woken.
  void wait_in(LogWatch& watch, boost::asio::io_context& io, std::size_t readers) const {
    std::size_t woken = 0;
    std::vector<LogWatch::Wait> waits;
    waits.reserve(readers);
    for (std::size_t i = 0; i < readers; ++i) {
      waits.push_back(watch.wait(file_.get(), [&] { ++woken; }));
    }
    io.restart();
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (woken < readers && io.run_one_until(end) > 0) {
    }
    EXPECT_EQ(woken, readers);
  }

  TempDirectory directory_;
  UniqueFd file_{::open((directory_.path() / "log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
};

TEST_F(LogWatchTest, WithoutAnInstanceEachReaderIsWokenByATimer) {
  expect_to_hold_without("max_inotify_instances", [this] {
    boost::asio::io_context io;
    const auto watch = LogWatch::make(io.get_executor());
    wait_in(*watch, io, 3);
    wait_in(*watch, io, 1);
    EXPECT_THAT(refused_within(60s), ElementsAre(KernelBudget::InotifyInstances));
    EXPECT_EQ(watch->watched_files(), 0U);
  });
}

TEST_F(LogWatchTest, WithoutAWatchEachReaderIsWokenByATimer) {
  expect_to_hold_without("max_inotify_watches", [this] {
    boost::asio::io_context io;
    const auto watch = LogWatch::make(io.get_executor());
    wait_in(*watch, io, 3);
    EXPECT_THAT(refused_within(60s), ElementsAre(KernelBudget::InotifyWatches));
  });
}

// A reader that waits again from its notification, as all of them do.
TEST_F(LogWatchTest, TwoReadersThatWaitAgainAreWokenAgain) {
  expect_to_hold_without("max_inotify_watches", [this] {
    boost::asio::io_context io;
    const auto watch = LogWatch::make(io.get_executor());
    struct Reader {
      std::optional<LogWatch::Wait> wait;
      int times = 0;
    };
    std::vector<Reader> readers(2);
    std::function<void(Reader&)> wait_again = [&](Reader& reader) {
      reader.wait.emplace(watch->wait(file_.get(), [&] {
        reader.wait.reset();
        if (++reader.times < 3) wait_again(reader);
      }));
    };
    for (Reader& reader : readers) wait_again(reader);
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (readers[0].times + readers[1].times < 6 && io.run_one_until(end) > 0) {
    }
    EXPECT_EQ(readers[0].times, 3);
    EXPECT_EQ(readers[1].times, 3);
  });
}

// The instance is held from the start.
TEST_F(LogWatchTest, AnInstanceThatWasOpenedBeforeIsUsed) {
  boost::asio::io_context io;
  const auto watch = LogWatch::make(io.get_executor());
  expect_to_hold_without("max_inotify_instances", [&] {
    const auto wait = watch->wait(file_.get(), [] {});
    EXPECT_EQ(refused_within(60s).size(), 0U);
  });
}

}  // namespace
}  // namespace agbox
