// SPDX-License-Identifier: Apache-2.0
#include "ingress/stream_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

namespace agbox {
namespace {

using namespace std::chrono_literals;

class StreamWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> ends;
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    reading_.reset(ends[0]);
    writing_.reset(ends[1]);
  }

  UniqueFd reading_;
  UniqueFd writing_;
  AbortSignal abort_;
};

TEST_F(StreamWriterTest, EverythingArrivesInOrder) {
  std::string sent;
  for (int i = 0; i < 200000; ++i) sent += std::to_string(i) + "\n";
  std::string received;
  std::thread reader([&] {
    std::array<char, 1000> chunk;
    for (ssize_t got = 0; (got = ::read(reading_.get(), chunk.data(), chunk.size())) > 0;) {
      received.append(chunk.data(), static_cast<std::size_t>(got));
    }
  });
  {
    StreamWriter writer(std::move(writing_), abort_, 60s);
    EXPECT_TRUE(writer.write(sent));
    EXPECT_TRUE(writer.flush());
  }
  reader.join();
  EXPECT_EQ(received, sent);
}

TEST_F(StreamWriterTest, AReaderThatTakesNothingIsAnError) {
  StreamWriter writer(std::move(writing_), abort_, 1ms);
  const auto written = writer.write(std::string(std::size_t{4} << 20, 'x'));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().reason(), reason::kHostNotReady);
}

TEST_F(StreamWriterTest, AReaderThatEndsIsItsOwnError) {
  reading_.reset();
  StreamWriter writer(std::move(writing_), abort_, 60s);
  EXPECT_TRUE(writer.write("x"));
  const auto flushed = writer.flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().reason(), reason::kReaderGone);
}

TEST_F(StreamWriterTest, AnAbortEndsAWait) {
  std::thread aborter([this] { abort_.fire(); });
  StreamWriter writer(std::move(writing_), abort_, 600s);
  const auto written = writer.write(std::string(std::size_t{4} << 20, 'x'));
  aborter.join();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().reason(), reason::kCancelled);
}

}  // namespace
}  // namespace agbox
