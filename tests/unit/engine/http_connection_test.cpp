// SPDX-License-Identifier: Apache-2.0
// What arrives in pieces, and cancellation between two pieces.
#include "engine/docker/api/http_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <filesystem>

#include "base/check.h"
#include "support/test_loop.h"

namespace agbox {
namespace {

namespace asio = boost::asio;
using asio::local::stream_protocol;
using testing::HasSubstr;

// More than an exchange takes until it waits for the engine.
constexpr int kStepsOfAnExchange = 20;
constexpr std::string_view kChunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
constexpr std::size_t kLimit = 1024;

std::string directory_for_a_socket() {
  std::string directory = (std::filesystem::temp_directory_path() / "http-XXXXXX").string();
  AGBOX_CHECK(::mkdtemp(directory.data()) != nullptr, "mkdtemp for an engine's socket");
  return directory;
}

// The test is the engine: it says what it wants, when it wants.
class HttpConnectionTest : public testing::Test {
 protected:
  ~HttpConnectionTest() override { std::filesystem::remove_all(temp_directory_); }

  void connect() {
    ours_ = loop_.run(HttpConnection::connect(temp_directory_ + "/s", std::nullopt)).value();
    engine_ = acceptor_.accept();
  }
  void say(std::string_view bytes) { asio::write(engine_, asio::buffer(bytes)); }
  void hear_head_of_stream() {
    say(kChunkedHead);
    ASSERT_EQ(loop_.run(ours_->send(request_)), 200);
  }

  // Cancels it after so many steps of the loop, and waits for its end.
  template <class T>
  EngineResult<T> cancelled_after(int steps, asio::awaitable<EngineResult<T>> call) {
    auto task = loop_.spawn(std::move(call));
    loop_.run_steps(steps);
    task.cancel();
    loop_.run_until([&] { return task.is_done(); });
    return std::move(task.result());
  }

  TestLoop loop_;
  const std::string temp_directory_ = directory_for_a_socket();
  stream_protocol::acceptor acceptor_{loop_.io(),
                                      stream_protocol::endpoint(temp_directory_ + "/s")};
  stream_protocol::socket engine_{loop_.io()};
  std::unique_ptr<HttpConnection> ours_;
  HttpRequest request_{.method = "POST", .target = "/x", .body = "{}"};
};

TEST_F(HttpConnectionTest, ARequestArrivesWhole) {
  connect();
  request_.body = std::string(std::size_t{4} << 20, 'b');
  request_.registry_auth = "who";
  auto status = loop_.spawn(ours_->send(request_));
  const std::string expected =
      "POST /x HTTP/1.1\r\nHost: docker\r\nUser-Agent: agents-sandbox\r\n"
      "X-Registry-Auth: who\r\nContent-Type: application/json\r\nContent-Length: 4194304\r\n\r\n" +
      request_.body;
  std::string heard;
  while (heard.size() < expected.size()) {
    loop_.run_until_idle();
    std::array<char, 65536> piece{};
    heard.append(piece.data(), engine_.read_some(asio::buffer(piece)));
  }
  EXPECT_TRUE(heard == expected) << heard.substr(0, 300);
  say("HTTP/1.1 204 No Content\r\n\r\n");
  loop_.run_until([&] { return status.is_done(); });
  EXPECT_EQ(status.result(), 204);
}

TEST_F(HttpConnectionTest, AnAnswerMayArriveByteByByte) {
  connect();
  auto status = loop_.spawn(ours_->send(request_));
  for (const char& byte : kChunkedHead) {
    ASSERT_FALSE(status.is_done());
    say({&byte, 1});
    loop_.run_until_idle();
  }
  ASSERT_TRUE(status.is_done());
  EXPECT_EQ(status.result(), 200);
  auto body = loop_.spawn(ours_->read_all(kLimit));
  for (const char& byte : std::string_view("3\r\none\r\n5\r\n, two\r\n0\r\n\r\n")) {
    ASSERT_FALSE(body.is_done());
    say({&byte, 1});
    loop_.run_until_idle();
  }
  ASSERT_TRUE(body.is_done());
  EXPECT_EQ(body.result(), "one, two");
  EXPECT_TRUE(ours_->is_reusable());
}

TEST_F(HttpConnectionTest, AnAnswerWithoutALengthEndsWithTheConnection) {
  connect();
  say("HTTP/1.1 200 OK\r\n\r\nall");
  engine_.shutdown(stream_protocol::socket::shutdown_send);
  ASSERT_EQ(loop_.run(ours_->send(request_)), 200);
  EXPECT_EQ(loop_.run(ours_->read_all(kLimit)), "all");
  EXPECT_FALSE(ours_->is_reusable());
}

TEST_F(HttpConnectionTest, AConnectionThatClosesTooEarlyIsUnavailable) {
  for (const std::string_view head : {"", "HTTP/1.1 200 OK\r\nContent-"}) {
    connect();
    say(head);
    engine_.shutdown(stream_protocol::socket::shutdown_send);
    const auto status = loop_.run(ours_->send(request_));
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().kind(), EngineErrorKind::Unavailable);
    EXPECT_THAT(status.error().message(), HasSubstr("closed the connection"));
  }
  connect();
  hear_head_of_stream();
  say("5\r\nonly");
  engine_.shutdown(stream_protocol::socket::shutdown_send);
  const auto body = loop_.run(ours_->read_all(kLimit));
  ASSERT_FALSE(body.has_value());
  EXPECT_EQ(body.error().kind(), EngineErrorKind::Unavailable);
}

TEST_F(HttpConnectionTest, CancellationIsHeardBetweenTwoPiecesOfARequest) {
  request_.body = std::string(std::size_t{8} << 20, 'b');  // more than a socket takes
  for (int steps = 0; steps < kStepsOfAnExchange; ++steps) {
    connect();
    const auto status = cancelled_after(steps, ours_->send(request_));
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().kind(), EngineErrorKind::Cancelled) << "after step " << steps;
  }
}

TEST_F(HttpConnectionTest, CancellationIsHeardBetweenTwoPiecesOfAHead) {
  for (int steps = 0; steps < kStepsOfAnExchange; ++steps) {
    connect();
    say("HTTP/1.1 200 OK\r\nContent-");
    const auto status = cancelled_after(steps, ours_->send(request_));
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().kind(), EngineErrorKind::Cancelled) << "after step " << steps;
  }
}

// Such as the line break after an event, which is not taken before the next event.
TEST_F(HttpConnectionTest, CancellationIsHeardBetweenTwoPiecesOfABody) {
  for (int steps = 0; steps < kStepsOfAnExchange; ++steps) {
    connect();
    hear_head_of_stream();
    say("5\r\nevent");
    EXPECT_EQ(loop_.run(ours_->read_some()), "event");
    say("\r\n");
    const auto next = cancelled_after(steps, ours_->read_some());
    ASSERT_FALSE(next.has_value());
    EXPECT_EQ(next.error().kind(), EngineErrorKind::Cancelled) << "after step " << steps;
  }
}

}  // namespace
}  // namespace agbox
