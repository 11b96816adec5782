// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/log_frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rfc3339.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kOut = 1;
constexpr char kErr = 2;
const std::string kFirst = "2026-11-18T10:00:00.000000001Z";
const std::string kSecond = "2026-11-18T12:00:00.000000002+02:00";

std::string log_frame(char output, const std::string& bytes) {
  std::string made{output, 0, 0, 0};
  for (int shift = 24; shift >= 0; shift -= 8) {
    made += static_cast<char>((bytes.size() >> static_cast<unsigned>(shift)) & 0xFFU);
  }
  return made + bytes;
}

LogPosition at(const std::string& time, std::uint64_t bytes) {
  return {.time = parse_rfc3339(time).value(), .bytes = bytes};
}

std::string data_of(const std::vector<LogPiece>& pieces) {
  std::string all;
  for (const LogPiece& piece : pieces) all += piece.data;
  return all;
}

TEST(LogFrames, JoinsLinesOfOneOutputAndKeepsTheOrder) {
  LogFrames frames;
  const auto pieces =
      frames.feed(log_frame(kOut, kFirst + " one\n") + log_frame(kOut, kSecond + " two\n") +
                  log_frame(kErr, kSecond + " bad\n") + log_frame(kOut, kSecond + " \n"));
  ASSERT_TRUE(pieces);
  EXPECT_THAT(*pieces, ElementsAre(LogPiece{v1::OUTPUT_STREAM_STDOUT, "one\ntwo\n", at(kSecond, 4)},
                                   LogPiece{v1::OUTPUT_STREAM_STDERR, "bad\n", at(kSecond, 8)},
                                   LogPiece{v1::OUTPUT_STREAM_STDOUT, "\n", at(kSecond, 9)}));
}

TEST(LogFrames, TakesBytesOneByOne) {
  const std::string stream = log_frame(kOut, kFirst + " a line\n") +
                             log_frame(kErr, kSecond + std::string(" \0\xff\x1b[2J\n", 8)) +
                             log_frame(kOut, "");
  LogFrames frames;
  std::string printed;
  for (const char& byte : stream) printed += data_of(frames.feed({&byte, 1}).value());
  EXPECT_EQ(printed, std::string("a line\n\0\xff\x1b[2J\n", 14));
}

TEST(LogFrames, BeginsAfterAPosition) {
  const std::string stream = log_frame(kOut, kFirst + " old\n") +
                             log_frame(kOut, kSecond + " abc") +
                             log_frame(kOut, kSecond + " def\n");
  const auto after = [&](const LogPosition& position) {
    LogFrames frames(position);
    return data_of(frames.feed(stream).value());
  };
  EXPECT_EQ(after(at(kFirst, 0)), "old\nabcdef\n");
  EXPECT_EQ(after(at(kFirst, 4)), "abcdef\n");
  EXPECT_EQ(after(at(kSecond, 0)), "abcdef\n");
  EXPECT_EQ(after(at(kSecond, 2)), "cdef\n");
  EXPECT_EQ(after(at(kSecond, 3)), "def\n");
  EXPECT_EQ(after(at(kSecond, 7)), "");
}

TEST(LogFrames, AClockThatIsSetBackHidesNothing) {
  LogFrames frames(at(kFirst, 4));
  const auto pieces =
      frames.feed(log_frame(kOut, kSecond + " new\n") + log_frame(kOut, kFirst + " newer\n"));
  EXPECT_EQ(data_of(pieces.value()), "new\nnewer\n");
}

TEST(LogFrames, ReportsThatTheEngineCannotReadOn) {
  LogFrames frames;
  EXPECT_THAT(frames.feed(log_frame(3, "Error grabbing logs").substr(0, 12)).value(), IsEmpty());
  const auto refused = frames.feed(log_frame(3, "Error grabbing logs").substr(12));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), EngineErrorKind::Refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("Error grabbing logs"));
}

TEST(LogFrames, WhatIsNoLogIsGarbled) {
  for (const std::string& bad :
       {log_frame(7, kFirst + " x\n"), log_frame(kOut, "x\n"), log_frame(kOut, "not a time x\n"),
        log_frame(kOut, kFirst), log_frame(kOut, std::string(100, '1')),
        std::string("HTTP/1.1 500 no\r\n")}) {
    LogFrames frames;
    const auto pieces = frames.feed(bad);
    ASSERT_FALSE(pieces) << bad;
    EXPECT_EQ(pieces.error().kind(), EngineErrorKind::Garbled);
  }
}

}  // namespace
}  // namespace agbox
