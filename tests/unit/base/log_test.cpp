// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/unique_fd.h"

namespace agbox {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

class LogTest : public testing::Test {
 protected:
  LogTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_NONBLOCK), 0);
    read_end_.reset(ends[0]);
    write_end_.reset(ends[1]);
    set_log_fd(write_end_.get());
  }
  ~LogTest() override {
    set_log_fd(STDERR_FILENO);
    set_log_level(LogLevel::Info);
  }
  std::string written() {
    std::string text(65536, '\0');
    const ssize_t length = ::read(read_end_.get(), text.data(), text.size());
    text.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    return text;
  }

 private:
  UniqueFd read_end_;
  UniqueFd write_end_;
};

TEST_F(LogTest, ALineIsOneObjectInAFixedOrder) {
  Logger()
      .with({"daemon", "agboxd"})
      .with({"sandbox_id", "s-1"})
      .info("sandbox ready",
            {{"exit_code", -3}, {"first", true}, {"bytes", 18446744073709551615ULL}});
  EXPECT_THAT(
      written(),
      MatchesRegex("\\{\"time\":\"[0-9-]+T[0-9:.]+Z\",\"level\":\"INFO\",\"msg\":\"sandbox ready\","
                   "\"daemon\":\"agboxd\",\"sandbox_id\":\"s-1\",\"exit_code\":-3,\"first\":true,"
                   "\"bytes\":18446744073709551615\\}\n"));
}

TEST_F(LogTest, LinesBelowTheLevelAreDropped) {
  Logger().debug("quiet");
  EXPECT_THAT(written(), IsEmpty());
  set_log_level(LogLevel::Error);
  Logger().warn("quiet");
  EXPECT_THAT(written(), IsEmpty());
  Logger().error("loud");
  EXPECT_THAT(written(), HasSubstr("loud"));
}

TEST_F(LogTest, HostileTextStaysOneLineOfValidJson) {
  Logger().info("a\nb\"c\\\x01\x7F\xC2\x9B", {{"name", std::string_view("\xFF\xC3\x28\0z", 5)}});
  const std::string line = written();
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_THAT(line, HasSubstr(R"("msg":"a\nb\"c\\\u0001\u007f\u009b")"));
  EXPECT_THAT(line, HasSubstr("\"name\":\"\xEF\xBF\xBD\xEF\xBF\xBD(\\u0000z\""));
}

TEST(JsonQuote, KeepsOnlyWellFormedUtf8) {
  EXPECT_EQ(json_quote("é €\xF0\x9F\x98\x80"), "\"é €\xF0\x9F\x98\x80\"");
  EXPECT_EQ(json_quote("\xE0\x80\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");  // overlong
  EXPECT_EQ(json_quote("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");  // surrogate
  EXPECT_EQ(json_quote("\xF4\x90\x80\x80"),
            "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");  // above U+10FFFF
  EXPECT_EQ(json_quote("\xE2\x82"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");  // cut short
}

TEST(LogLevels, AreReadInAnyCase) {
  EXPECT_EQ(parse_log_level("DeBuG"), LogLevel::Debug);
  EXPECT_EQ(parse_log_level("warn"), LogLevel::Warn);
  EXPECT_EQ(parse_log_level("warning"), std::nullopt);
  EXPECT_EQ(parse_log_level(""), std::nullopt);
}

}  // namespace
}  // namespace agbox
