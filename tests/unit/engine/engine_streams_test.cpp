// SPDX-License-Identifier: Apache-2.0
// What is taken out of the engine's streams: lines and the progress of a pull.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/docker/api/line_splitter.h"
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

TEST(PercentEncode, NothingLeavesItsPlace) {
  EXPECT_EQ(percent_encode("a/b?c&d=e#f %\n\xc3\xa9"), "a%2Fb%3Fc%26d%3De%23f%20%25%0A%C3%A9");
  EXPECT_EQ(percent_encode("reg:5000/a@b", "/:@"), "reg:5000/a@b");
  EXPECT_EQ(UrlQuery().add("a", "1&2").add_flag("b", true).add_flag("c", false).text(),
            "a=1%262&b=1");
  EXPECT_EQ(label_filter({{"a", "1"}, {"b", ""}}), R"({"label":["a=1","b"]})");
}

}  // namespace
}  // namespace agbox
