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

// One round of the guest's loop; false where nothing was ready.
bool round(OutputRelay& relay) {
  Watches watches;
  relay.collect(watches);
  bool worked = false;
  for (Watch& watch : watches.watches) {
    pollfd polled{watch.fd, watch.events, 0};
    if (::poll(&polled, 1, 0) <= 0) continue;
    watch.ready();
    worked = true;
  }
  return worked;
}

TEST(Tail, KeepsTheLastBytes) {
  Tail tail;
  tail.add("begin ");
  tail.add(std::string(Tail::kSize - 3, 'x'));
  tail.add("end");
  EXPECT_EQ(tail.text(), std::string(Tail::kSize - 3, 'x') + "end");
  tail.add(std::string(3 * Tail::kSize, 'y'));
  EXPECT_EQ(tail.text(), std::string(Tail::kSize, 'y'));
}

TEST(OutputRelay, CarriesEverythingAndRemembersTheLast) {
  Pipe source;
  Pipe log;
  Tail tail;
  OutputRelay relay(log.writing.get(), tail);
  relay.start(std::move(source.reading));
  write_to(source.writing, "hello ");
  write_to(source.writing, "world");
  while (round(relay)) {
  }
  EXPECT_EQ(read_all(log.reading), "hello world");
  EXPECT_EQ(tail.text(), "hello world");
}

TEST(OutputRelay, AFullLogHoldsTheWriterUpAndLosesNothing) {
  Pipe source;
  Pipe log;
  Tail tail;
  OutputRelay relay(log.writing.get(), tail);
  relay.start(std::move(source.reading));
  std::string sent;
  std::string got;
  // Until the source takes no more: the log is full, the relay has stopped reading.
  while (true) {
    const std::string chunk(4096, static_cast<char>('a' + sent.size() / 4096 % 26));
    if (::write(source.writing.get(), chunk.data(), chunk.size()) < 0) {
      if (!round(relay)) break;
      continue;
    }
    sent += chunk;
    round(relay);
  }
  EXPECT_GT(sent.size(), 65536U);
  do {
    got += read_all(log.reading);
  } while (round(relay));
  got += read_all(log.reading);
  EXPECT_EQ(got, sent);
}

TEST(OutputRelay, FinishTakesWhatWasWrittenAndDoesNotWaitForAStuckLog) {
  Pipe source;
  Pipe log;
  Tail tail;
  OutputRelay relay(log.writing.get(), tail);
  relay.start(std::move(source.reading));
  write_to(source.writing, std::string(50000, 'x'));
  relay.finish(std::chrono::milliseconds(0));
  EXPECT_EQ(read_all(log.reading).size(), 50000U);

  const std::string filling(4096, 'f');
  while (::write(log.writing.get(), filling.data(), filling.size()) > 0) {
  }
  write_to(source.writing, "lost");
  relay.finish(std::chrono::milliseconds(10));
  EXPECT_EQ(tail.text().substr(tail.text().size() - 4), "lost");
}

TEST(OutputRelay, FinishTakesTheRestAlsoWhileTheLogIsBehind) {
  Pipe source;
  Pipe log;
  Tail tail;
  OutputRelay relay(log.writing.get(), tail);
  relay.start(std::move(source.reading));
  const std::string filling(4096, 'f');
  while (::write(log.writing.get(), filling.data(), filling.size()) > 0) {
  }
  write_to(source.writing, std::string(20000, 'x'));
  while (round(relay)) {  // the first of it waits for the log, the rest in the pipe
  }
  read_all(log.reading);
  relay.finish(std::chrono::milliseconds(0));
  EXPECT_EQ(read_all(log.reading), std::string(20000, 'x'));
}

TEST(OutputRelay, EndsWithItsSource) {
  Pipe source;
  Pipe log;
  Tail tail;
  OutputRelay relay(log.writing.get(), tail);
  relay.start(std::move(source.reading));
  source.writing.reset();
  EXPECT_TRUE(round(relay));
  Watches watches;
  relay.collect(watches);
  EXPECT_TRUE(watches.watches.empty());
}

}  // namespace
}  // namespace agbox::guest
