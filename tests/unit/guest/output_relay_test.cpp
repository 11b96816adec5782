// SPDX-License-Identifier: Apache-2.0
#include "guest/output_relay.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>

namespace agbox::guest {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends;
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    reading.reset(ends[0]);
    writing.reset(ends[1]);
  }
  UniqueFd reading;
  UniqueFd writing;
};

void write_to(const UniqueFd& fd, std::string_view text) {
  ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

std::string read_all(const UniqueFd& fd) {
  std::string text;
  std::array<char, 65536> chunk;
  ssize_t got = 0;
  while ((got = ::read(fd.get(), chunk.data(), chunk.size())) > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return text;
}

// A relay from one pipe to another, whose read end is the engine's log.
class OutputRelayTest : public testing::Test {
 protected:
  OutputRelayTest() { relay_.start(std::move(source_.reading)); }

  // One iteration of the guest's loop; false if nothing was ready.
  bool round() {
    Watches watches;
    relay_.collect(watches);
    bool worked = false;
    for (Watch& watch : watches.watches) {
      pollfd polled{watch.fd, watch.events, 0};
      if (::poll(&polled, 1, 0) <= 0) continue;
      watch.ready();
      worked = true;
    }
    return worked;
  }
  void fill_the_log() {
    const std::string filling(4096, 'f');
    while (::write(log_.writing.get(), filling.data(), filling.size()) > 0) {
    }
  }

  Pipe source_;
  Pipe log_;
  Tail tail_;
  OutputRelay relay_{log_.writing.get(), tail_};
};

TEST(Tail, KeepsTheLastBytes) {
  Tail tail;
  tail.add("begin ");
  tail.add(std::string(Tail::kSize - 3, 'x'));
  tail.add("end");
  EXPECT_EQ(tail.text(), std::string(Tail::kSize - 3, 'x') + "end");
  tail.add(std::string(3 * Tail::kSize, 'y'));
  EXPECT_EQ(tail.text(), std::string(Tail::kSize, 'y'));
}

TEST_F(OutputRelayTest, CopiesEverythingAndKeepsTheTail) {
  write_to(source_.writing, "hello ");
  write_to(source_.writing, "world");
  while (round()) {
  }
  EXPECT_EQ(read_all(log_.reading), "hello world");
  EXPECT_EQ(tail_.text(), "hello world");
}

TEST_F(OutputRelayTest, AFullLogBlocksTheWriterAndLosesNothing) {
  std::string sent;
  std::string got;
  // Until the source is full: the log is full, and the relay has stopped reading.
  while (true) {
    const std::string chunk(4096, static_cast<char>('a' + sent.size() / 4096 % 26));
    if (::write(source_.writing.get(), chunk.data(), chunk.size()) < 0) {
      if (!round()) break;
      continue;
    }
    sent += chunk;
    round();
  }
  EXPECT_GT(sent.size(), 65536U);
  do {
    got += read_all(log_.reading);
  } while (round());
  got += read_all(log_.reading);
  EXPECT_EQ(got, sent);
}

TEST_F(OutputRelayTest, FinishDrainsThePipeAndDoesNotWaitForABlockedLog) {
  write_to(source_.writing, std::string(50000, 'x'));
  relay_.finish(std::chrono::milliseconds(0));
  EXPECT_EQ(read_all(log_.reading).size(), 50000U);

  fill_the_log();
  write_to(source_.writing, "lost");
  relay_.finish(std::chrono::milliseconds(10));
  EXPECT_EQ(tail_.text().substr(tail_.text().size() - 4), "lost");
}

TEST_F(OutputRelayTest, FinishDrainsThePipeEvenIfTheLogIsSlow) {
  fill_the_log();
  write_to(source_.writing, std::string(20000, 'x'));
  while (round()) {  // the first part waits for the log, the rest in the pipe
  }
  read_all(log_.reading);
  relay_.finish(std::chrono::milliseconds(0));
  EXPECT_EQ(read_all(log_.reading), std::string(20000, 'x'));
}

TEST_F(OutputRelayTest, EndsWithItsSource) {
  source_.writing.reset();
  EXPECT_TRUE(round());
  Watches watches;
  relay_.collect(watches);
  EXPECT_TRUE(watches.watches.empty());
}

}  // namespace
}  // namespace agbox::guest
