// SPDX-License-Identifier: Apache-2.0
// What is taken out of the engine's streams: lines, the progress of a pull, and output of
// processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/docker/api/line_splitter.h"
#include "engine/docker/api/output_tail.h"
#include "engine/docker/api/url_query.h"
#include "engine/docker/images/pull_progress.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(LineSplitter, PutsPiecesTogether) {
  LineSplitter lines;
  EXPECT_THAT(*lines.feed("one\r\ntw"), ElementsAre("one"));
  EXPECT_THAT(*lines.feed("o"), IsEmpty());
  EXPECT_THAT(*lines.feed("\n\n\r\nthree\nrest"), ElementsAre("two", "three"));
  EXPECT_THAT(*lines.feed("\n"), ElementsAre("rest"));
}

TEST(LineSplitter, ALineWithoutEndIsGarbledAndNotKept) {
  LineSplitter lines(10);
  EXPECT_TRUE(lines.feed("0123456789"));
  EXPECT_EQ(lines.feed("x").error().kind(), EngineErrorKind::Garbled);
}

TEST(PullTracker, CountsLayersAndBytes) {
  PullTracker pull;
  ASSERT_TRUE(pull.take(R"({"status":"Pulling from library/x","id":"latest"})"));
  ASSERT_TRUE(pull.take(R"({"status":"Pulling fs layer","progressDetail":{},"id":"a"})"));
  ASSERT_TRUE(pull.take(R"({"status":"Already exists","progressDetail":{},"id":"b"})"));
  ASSERT_TRUE(
      pull.take(R"({"status":"Downloading","progressDetail":{"current":10,"total":40},"id":"a"})"));
  EXPECT_EQ(pull.progress(), (PullProgress{2, 1, 10, 40}));
  ASSERT_TRUE(pull.take(R"({"status":"Pull complete","progressDetail":{},"id":"a"})"));
  ASSERT_TRUE(pull.take(R"({"status":"Digest: sha256:1"})"));
  EXPECT_EQ(pull.progress(), (PullProgress{2, 2, 40, 40}));
}

TEST(PullTracker, AnErrorInTheStreamIsAnError) {
  PullTracker pull;
  const auto refused =
      pull.take(R"({"errorDetail":{"message":"unexpected EOF"},"error":"unexpected EOF"})");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), EngineErrorKind::Refused);
  EXPECT_EQ(refused.error().message(), "Error response from daemon: unexpected EOF");
  EXPECT_EQ(pull.take(R"({"error":"manifest unknown"})").error().kind(), EngineErrorKind::NotFound);
  EXPECT_EQ(pull.take("no json").error().kind(), EngineErrorKind::Garbled);
}

TEST(PullTracker, HostileNumbersDoNoHarm) {
  PullTracker pull;
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(
        pull.take(R"({"status":"Downloading","progressDetail":{"current":9000000000000000000,)"
                  R"("total":9000000000000000000},"id":")" +
                  std::to_string(i) + "\"}"));
  }
  EXPECT_LE(pull.progress().layers, 1024);
  EXPECT_GT(pull.progress().bytes_total, 0);
  EXPECT_TRUE(
      pull.take(R"({"status":"Downloading","progressDetail":{"current":-5,"total":-9},"id":"0"})"));
  EXPECT_GT(pull.progress().bytes_done, 0);
}

TEST(PullProgress, IsDescribedForPeople) {
  EXPECT_EQ(describe_pull("redis", {3, 1, 0, 0}), "pulling redis: 1 of 3 layers");
  EXPECT_EQ(describe_pull("redis", {3, 1, 10 << 20, 41 << 20}),
            "pulling redis: 1 of 3 layers, 10 of 41 MiB");
}

std::string frame(char output, std::uint32_t size) {
  std::string made{output, 0, 0, 0};
  for (int shift = 24; shift >= 0; shift -= 8) {
    made += static_cast<char>((size >> static_cast<unsigned>(shift)) & 0xFFU);
  }
  return made;
}

TEST(OutputTail, PutsFramesTogetherHoweverTheyAreCut) {
  const std::string stream = frame(1, 4) + "one\n" + frame(2, 0) + frame(2, 3) + "two";
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    OutputTail output;
    output.feed(stream.substr(0, cut));
    output.feed(stream.substr(cut));
    EXPECT_EQ(output.shown(), "one\\ntwo") << "cut at " << cut;
  }
}

TEST(OutputTail, KeepsTheEndAndNoMore) {
  OutputTail output;
  output.feed(frame(1, 5'000'000) + std::string(2'000'000, 'a'));
  output.feed(std::string(3'000'000, 'b') + frame(2, 3) + "end");
  EXPECT_EQ(output.shown(), std::string(kLongestShownOutput - 3, 'b') + "end");
}

TEST(OutputTail, AFrameThatBreaksOffIsShownAsFarAsItCame) {
  OutputTail output;
  output.feed(frame(1, 0xFFFFFFFF) + "so far");
  EXPECT_EQ(output.shown(), "so far");
  OutputTail head;
  head.feed(frame(1, 9).substr(0, 5));
  EXPECT_EQ(head.shown(), "");
}

TEST(ShownOutput, IsOneLineWithoutControlCharacters) {
  EXPECT_EQ(shown_output(""), "");
  EXPECT_EQ(shown_output(" \n\t\r\n"), "");
  EXPECT_EQ(shown_output("a\r\nb\tc\n\n"), "a\\nb c");
  EXPECT_EQ(shown_output("\x1b[2J\x7f\r\xc2\x9b x"), "\\x1b[2J\\x7f\\x0d\\xc2\\x9b x");
  EXPECT_EQ(shown_output(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(shown_output("\xff\xc3\xa9"), "\xEF\xBF\xBD\xc3\xa9");
  EXPECT_EQ(shown_output(std::string(5000, '\x1b')).size(), kLongestShownOutput);
  // Never half a character.
  std::string accents = "x";
  for (int i = 0; i < 1000; ++i) accents += "\xc3\xa9";
  EXPECT_EQ(shown_output(accents), accents.substr(accents.size() - kLongestShownOutput));
  accents += "y";
  EXPECT_EQ(shown_output(accents), accents.substr(accents.size() - kLongestShownOutput + 1));
}

TEST(PercentEncode, NothingLeavesItsPlace) {
  EXPECT_EQ(percent_encode("a/b?c&d=e#f %\n\xc3\xa9"), "a%2Fb%3Fc%26d%3De%23f%20%25%0A%C3%A9");
  EXPECT_EQ(percent_encode("reg:5000/a@b", "/:@"), "reg:5000/a@b");
  EXPECT_EQ(UrlQuery().add("a", "1&2").add_flag("b", true).add_flag("c", false).text(),
            "a=1%262&b=1");
  EXPECT_EQ(label_filter({{"a", "1"}, {"b", ""}}), R"({"label":["a=1","b"]})");
}

}  // namespace
}  // namespace agbox
