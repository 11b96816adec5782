// SPDX-License-Identifier: Apache-2.0
#include "guestwire/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agbox/guest/v1/link.pb.h"

namespace agbox::guestwire {
namespace {

using testing::Optional;
using namespace std::string_literals;

TEST(Frame, HasItsLengthInFrontLittleEndian) {
  EXPECT_EQ(frame(std::string_view("abc")), "\x03\0\0\0abc"s);
  EXPECT_EQ(frame(std::string(258, 'x')).substr(0, 5), "\x02\x01\0\0x"s);
}

TEST(FrameReader, SplitsAStreamIndependentOfItsChunks) {
  const std::string stream = frame(std::string_view("one")) + frame(std::string_view("two"));
  for (std::size_t split = 0; split <= stream.size(); ++split) {
    FrameReader reader(16);
    reader.feed(std::string_view(stream).substr(0, split));
    std::vector<std::string> got;
    while (auto message = reader.next()) got.push_back(*message);
    reader.feed(std::string_view(stream).substr(split));
    while (auto message = reader.next()) got.push_back(*message);
    EXPECT_THAT(got, testing::ElementsAre("one", "two")) << "split at " << split;
    EXPECT_FALSE(reader.broken());
  }
}

TEST(FrameReader, AcceptsAFrameOfExactlyTheLimit) {
  FrameReader reader(4);
  reader.feed(frame(std::string_view("four")));
  EXPECT_THAT(reader.next(), Optional(std::string("four")));
}

TEST(FrameReader, RejectsATooLongFrameByItsHeader) {
  FrameReader reader(4);
  reader.feed("\x05\0\0\0"s);
  EXPECT_EQ(reader.next(), std::nullopt);
  EXPECT_TRUE(reader.broken());
}

TEST(FrameReader, RefusesAnEmptyFrame) {
  FrameReader reader(4);
  reader.feed("\0\0\0\0"s);
  EXPECT_EQ(reader.next(), std::nullopt);
  EXPECT_TRUE(reader.broken());
}

TEST(FrameReader, ReadsNothingMoreOnceBroken) {
  FrameReader reader(4);
  reader.feed("\xFF\xFF\xFF\xFF"s);
  EXPECT_EQ(reader.next(), std::nullopt);
  reader.feed(frame(std::string_view("ok")));
  EXPECT_EQ(reader.next(), std::nullopt);
  EXPECT_TRUE(reader.broken());
}

TEST(FrameReader, ARaisedLimitAppliesFromThenOn) {
  FrameReader reader(2);
  reader.feed(frame(std::string_view("ab")));
  EXPECT_THAT(reader.next(), Optional(std::string("ab")));
  reader.set_limit(3);
  reader.feed(frame(std::string_view("abc")));
  EXPECT_THAT(reader.next(), Optional(std::string("abc")));
}

TEST(FrameReader, ManySmallFramesInOneRead) {
  std::string stream;
  for (int i = 0; i < 100000; ++i) stream += frame(std::string_view("x"));
  FrameReader reader(kMaxFrameToDaemon);
  reader.feed(stream);
  int count = 0;
  while (reader.next()) ++count;
  EXPECT_EQ(count, 100000);
}

TEST(Frame, AFailedHelloWithOutputFitsTheLimitBeforeTheProof) {
  guest::v1::ToDaemon message;
  message.mutable_hello()->mutable_failure()->set_output_tail(std::string(4096, '\xFF'));
  message.mutable_hello()->mutable_failure()->set_detail(std::string(4096, 'x'));
  EXPECT_LT(message.ByteSizeLong(), kMaxUnprovenFrame);
}

}  // namespace
}  // namespace agbox::guestwire
