// SPDX-License-Identifier: Apache-2.0
// What programs rely on of epoll, while the kernel refuses watches: of descriptors alone, and of
// Asio on top.
#include "async/epoll_fallback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/kernel_budget.h"
#include "base/unique_fd.h"

namespace agbox {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;
namespace asio = boost::asio;

constexpr int kForever = -1;

class EpollFallbackTest : public testing::Test {
 protected:
  ~EpollFallbackTest() override { refuse_epoll_watches_for_test(false); }

  static UniqueFd new_epoll() { return UniqueFd(::epoll_create1(EPOLL_CLOEXEC)); }
  struct Pair {
    UniqueFd ours;
    UniqueFd others;
  };
  static Pair new_pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    return {.ours = UniqueFd(ends[0]), .others = UniqueFd(ends[1])};
  }
  static int control(const UniqueFd& epoll, int operation, const UniqueFd& fd,
                     std::uint32_t events = EPOLLIN | EPOLLET) {
    epoll_event event{.events = events, .data = {.fd = fd.get()}};
    return ::epoll_ctl(epoll.get(), operation, fd.get(), &event);
  }
  static void add_refused(const UniqueFd& epoll, const UniqueFd& fd,
                          std::uint32_t events = EPOLLIN | EPOLLET) {
    refuse_epoll_watches_for_test(true);
    EXPECT_EQ(control(epoll, EPOLL_CTL_ADD, fd, events), 0);
    refuse_epoll_watches_for_test(false);
  }
  static void write_to(const UniqueFd& fd) { EXPECT_EQ(::write(fd.get(), "x", 1), 1); }
  static void read_all(const UniqueFd& fd) {
    std::array<char, 64> buffer{};
    while (::read(fd.get(), buffer.data(), buffer.size()) > 0) {
    }
  }
  static std::vector<int> wait(const UniqueFd& epoll, int timeout) {
    std::array<epoll_event, 8> events{};
    const int count = ::epoll_wait(epoll.get(), events.data(), events.size(), timeout);
    std::vector<int> ready;
    for (int i = 0; i < count; ++i) ready.push_back(events.at(static_cast<std::size_t>(i)).data.fd);
    return ready;
  }
  // A wait may also end early with nothing.
  static std::vector<int> wait_for_any(const UniqueFd& epoll) {
    std::vector<int> ready;
    while (ready.empty()) ready = wait(epoll, kForever);
    return ready;
  }
};

TEST_F(EpollFallbackTest, ARefusedDescriptorIsReportedNextToOneThatWasTaken) {
  const UniqueFd epoll = new_epoll();
  const Pair taken = new_pair();
  const Pair refused = new_pair();
  EXPECT_EQ(control(epoll, EPOLL_CTL_ADD, taken.ours), 0);
  EXPECT_EQ(descriptors_refused_by_epoll(), 0U);
  add_refused(epoll, refused.ours);
  EXPECT_EQ(descriptors_refused_by_epoll(), 1U);
  EXPECT_THAT(refused_within(60s), Contains(KernelBudget::EpollWatches));
  write_to(refused.others);
  EXPECT_THAT(wait(epoll, 10'000), ElementsAre(refused.ours.get()));
  read_all(refused.ours);
  write_to(taken.others);
  EXPECT_THAT(wait(epoll, 10'000), ElementsAre(taken.ours.get()));
  read_all(taken.ours);
  EXPECT_THAT(wait(epoll, 0), IsEmpty());
}

TEST_F(EpollFallbackTest, ItIsGivenToEpollOnceTheKernelTakesIt) {
  const UniqueFd epoll = new_epoll();
  const Pair pair = new_pair();
  add_refused(epoll, pair.ours);
  EXPECT_THAT(wait(epoll, 0), IsEmpty());
  EXPECT_EQ(descriptors_refused_by_epoll(), 0U);
  write_to(pair.others);
  EXPECT_THAT(wait(epoll, 10'000), ElementsAre(pair.ours.get()));
}

TEST_F(EpollFallbackTest, AWaitThatHasBegunSeesADescriptorThatIsRefusedLater) {
  const UniqueFd epoll = new_epoll();
  const Pair pair = new_pair();
  auto ready = std::async(std::launch::async, [&] { return wait_for_any(epoll); });
  refuse_epoll_watches_for_test(true);
  EXPECT_EQ(control(epoll, EPOLL_CTL_ADD, pair.ours), 0);
  write_to(pair.others);
  EXPECT_THAT(ready.get(), ElementsAre(pair.ours.get()));
}

TEST_F(EpollFallbackTest, AnInstanceThatIsCreatedWhileWatchesAreRefusedWorks) {
  refuse_epoll_watches_for_test(true);
  const UniqueFd epoll = new_epoll();
  const Pair pair = new_pair();
  auto ready = std::async(std::launch::async, [&] { return wait_for_any(epoll); });
  EXPECT_EQ(control(epoll, EPOLL_CTL_ADD, pair.ours), 0);
  write_to(pair.others);
  EXPECT_THAT(ready.get(), ElementsAre(pair.ours.get()));
}

TEST_F(EpollFallbackTest, AnEdgeIsReportedOnceUntilThereIsAnother) {
  refuse_epoll_watches_for_test(true);
  const UniqueFd epoll = new_epoll();
  const Pair pair = new_pair();
  EXPECT_EQ(control(epoll, EPOLL_CTL_ADD, pair.ours), 0);
  write_to(pair.others);
  EXPECT_THAT(wait(epoll, kForever), ElementsAre(pair.ours.get()));
  // Its reader is not done yet: it is reported again now and then, and not all the time.
  const auto before = std::chrono::steady_clock::now();
  std::size_t again = 0;
  for (int i = 0; i < 1000; ++i) again += wait(epoll, 0).size();
  EXPECT_LE(again,
            1 + static_cast<std::size_t>((std::chrono::steady_clock::now() - before) / 10ms));
  EXPECT_EQ(control(epoll, EPOLL_CTL_MOD, pair.ours), 0);
  EXPECT_THAT(wait(epoll, 0), ElementsAre(pair.ours.get())) << "a modified watch reports at once";
  EXPECT_THAT(wait(epoll, kForever), ElementsAre(pair.ours.get())) << "what was missed comes again";
  read_all(pair.ours);
  EXPECT_THAT(wait(epoll, 50), IsEmpty());
}

TEST_F(EpollFallbackTest, ALevelIsReportedForAsLongAsItLasts) {
  refuse_epoll_watches_for_test(true);
  const UniqueFd epoll = new_epoll();
  const Pair pair = new_pair();
  EXPECT_EQ(control(epoll, EPOLL_CTL_ADD, pair.ours, EPOLLIN), 0);
  write_to(pair.others);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(wait(epoll, 0), ElementsAre(pair.ours.get()));
  EXPECT_EQ(control(epoll, EPOLL_CTL_DEL, pair.ours), 0);
  EXPECT_THAT(wait(epoll, 0), IsEmpty());
}

// Descriptors are closed without being removed.
TEST_F(EpollFallbackTest, AClosedDescriptorIsForgottenAndItsNumberMayComeAgain) {
  refuse_epoll_watches_for_test(true);
  const UniqueFd epoll = new_epoll();
  Pair pair = new_pair();
  const int number = pair.ours.get();
  EXPECT_EQ(control(epoll, EPOLL_CTL_ADD, pair.ours), 0);
  pair.ours.reset();
  Pair next = new_pair();
  ASSERT_EQ(next.ours.get(), number);
  write_to(next.others);
  EXPECT_THAT(wait(epoll, 0), IsEmpty()) << "it is another file, which was not added";
  EXPECT_EQ(descriptors_refused_by_epoll(), 0U);
  EXPECT_EQ(control(epoll, EPOLL_CTL_ADD, next.ours), 0);
  EXPECT_THAT(wait(epoll, 0), ElementsAre(number));
}

TEST_F(EpollFallbackTest, OtherErrorsAreTheKernels) {
  const UniqueFd epoll = new_epoll();
  const Pair pair = new_pair();
  EXPECT_EQ(control(epoll, EPOLL_CTL_MOD, pair.ours), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(control(epoll, EPOLL_CTL_ADD, epoll), -1);
  EXPECT_EQ(errno, EINVAL);
}

// Bytes there and back, over and over, with timers and work from another thread in between.
asio::awaitable<int> converse(asio::local::stream_protocol::socket& socket, int rounds) {
  std::array<char, 1 << 16> block{};  // more than the socket takes at once
  asio::steady_timer timer(socket.get_executor());
  for (int round = 0; round < rounds; ++round) {
    co_await asio::async_write(socket, asio::buffer(block), asio::use_awaitable);
    co_await asio::async_read(socket, asio::buffer(block), asio::use_awaitable);
    timer.expires_after(1ms);
    co_await timer.async_wait(asio::use_awaitable);
  }
  co_return rounds;
}

asio::awaitable<void> echo(asio::local::stream_protocol::socket& socket, int rounds) {
  std::array<char, 1 << 16> block{};
  for (int round = 0; round < rounds; ++round) {
    co_await asio::async_read(socket, asio::buffer(block), asio::use_awaitable);
    co_await asio::async_write(socket, asio::buffer(block), asio::use_awaitable);
  }
}

void run_conversation(asio::io_context& io) {
  constexpr int kRounds = 20;
  asio::local::stream_protocol::socket left(io);
  asio::local::stream_protocol::socket right(io);
  asio::local::connect_pair(left, right);
  std::promise<int> done;
  asio::co_spawn(io, echo(right, kRounds), [](const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);
  });
  auto work = asio::make_work_guard(io);
  std::thread loop([&] { io.run(); });  // so that the conversation begins while it waits
  asio::co_spawn(io, converse(left, kRounds), [&](const std::exception_ptr& failure, int rounds) {
    EXPECT_FALSE(failure);
    done.set_value(rounds);
  });
  EXPECT_EQ(done.get_future().get(), kRounds);
  work.reset();
  io.stop();
  loop.join();
}

TEST_F(EpollFallbackTest, AsioGoesOnWithSocketsThatAreRefused) {
  asio::io_context io(1);
  asio::steady_timer opens_its_descriptors(io);
  refuse_epoll_watches_for_test(true);
  run_conversation(io);
}

TEST_F(EpollFallbackTest, AsioBeginsWithoutAnyWatch) {
  refuse_epoll_watches_for_test(true);
  asio::io_context io(1);
  run_conversation(io);
}

}  // namespace
}  // namespace agbox
