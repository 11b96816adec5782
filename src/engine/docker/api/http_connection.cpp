// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/http_connection.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/read_size.hpp>
#include <boost/beast/http.hpp>

#include "async/await.h"
#include "async/cancellation.h"

namespace agbox {

namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr std::uint32_t kLongestHead = 64 * 1024;
constexpr std::size_t kPiece = 16 * 1024;
constexpr std::size_t kLargestRead = 64 * 1024;

bool is_broken_off(error_code problem) {
  return problem == asio::error::eof || problem == asio::error::connection_reset ||
         problem == asio::error::broken_pipe || problem == http::error::end_of_stream ||
         problem == http::error::partial_message;
}

std::unexpected<EngineError> cancelled() {
  return engine_fail(EngineErrorKind::Cancelled, "cancelled");
}

std::string why_not_connected(const std::string& socket_path, error_code problem) {
  const std::string what = "cannot reach the container engine at " + socket_path + ": ";
  if (problem == asio::error::access_denied) {
    return what + problem.message() + "; this user needs the right to use it (group docker)";
  }
  return what + problem.message() + "; is it running?";
}

}  // namespace

struct HttpConnection::Wire : std::enable_shared_from_this<Wire> {
  explicit Wire(const asio::any_io_executor& executor) : socket(executor), timer(executor) {}

  asio::local::stream_protocol::socket socket;
  asio::steady_timer timer;
  bool has_expired = false;
  std::chrono::steady_clock::duration allowed{};
  boost::beast::flat_buffer buffer;
  std::optional<http::response_parser<http::buffer_body>> answer;
  std::array<char, kPiece> piece{};

  // Like http::async_read_some(), which may read from the socket several times. Unlike Beast's
  // http::async_write(), it does not check between two reads whether it was cancelled: the next
  // read would wait forever.
  asio::awaitable<error_code> parse_some();

  EngineError translate(error_code problem) const {
    if (has_expired) {
      const auto seconds = std::chrono::duration<double>(allowed).count();
      std::string text = std::to_string(seconds);
      text.resize(text.find('.') + 2);
      return {EngineErrorKind::Unavailable, "the engine gave no answer within " + text + " s"};
    }
    if (problem == asio::error::operation_aborted) {
      return cancelled().error();
    }
    if (is_broken_off(problem)) {
      return {EngineErrorKind::Unavailable, "the engine closed the connection"};
    }
    if (problem.category() == http::make_error_code(http::error::bad_version).category()) {
      return {EngineErrorKind::Garbled, "the engine's answer is not HTTP: " + problem.message()};
    }
    return {EngineErrorKind::Unavailable,
            "the connection to the engine failed: " + problem.message()};
  }
};

asio::awaitable<error_code> HttpConnection::Wire::parse_some() {
  while (true) {
    error_code problem;
    if (buffer.size() > 0) {
      buffer.consume(answer->put(buffer.data(), problem));
      if (problem != http::error::need_more) co_return problem;
    }
    if (co_await is_cancelled()) co_return asio::error::operation_aborted;
    std::size_t length = 0;
    std::tie(problem, length) = co_await socket.async_read_some(
        buffer.prepare(boost::beast::read_size(buffer, kLargestRead)), kAwait);
    buffer.commit(length);
    if (problem == asio::error::eof && answer->got_some()) {
      problem.clear();
      answer->put_eof(problem);
      co_return problem;
    }
    if (problem) co_return problem;
  }
}

HttpConnection::HttpConnection(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}
HttpConnection::~HttpConnection() = default;

asio::awaitable<EngineResult<std::unique_ptr<HttpConnection>>> HttpConnection::connect(
    std::string socket_path, EngineDeadline deadline) {
  if (socket_path.size() >= sizeof(sockaddr_un::sun_path)) {
    co_return engine_fail(EngineErrorKind::Unavailable,
                          "the engine's socket path " + socket_path + " has more than " +
                              std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes");
  }
  auto wire = std::make_shared<Wire>(co_await asio::this_coro::executor);
  std::unique_ptr<HttpConnection> connection(new HttpConnection(wire));
  connection->set_deadline(deadline);
  if (co_await is_cancelled()) co_return cancelled();
  const auto [problem] = co_await wire->socket.async_connect(
      asio::local::stream_protocol::endpoint(socket_path), kAwait);
  if (problem && (wire->has_expired || problem == asio::error::operation_aborted)) {
    co_return std::unexpected(wire->translate(problem));
  }
  if (problem) {
    co_return engine_fail(EngineErrorKind::Unavailable, why_not_connected(socket_path, problem));
  }
  co_return connection;
}

void HttpConnection::set_deadline(EngineDeadline deadline) {
  if (!deadline) {
    wire_->timer.expires_at(std::chrono::steady_clock::time_point::max());
    return;
  }
  wire_->allowed = *deadline - std::chrono::steady_clock::now();
  wire_->timer.expires_at(*deadline);
  wire_->timer.async_wait([weak = wire_->weak_from_this()](error_code problem) {
    const std::shared_ptr<Wire> wire = weak.lock();
    if (problem || !wire) return;
    // The deadline may have been moved after this handler was queued.
    if (wire->timer.expiry() > std::chrono::steady_clock::now()) return;
    wire->has_expired = true;
    error_code ignored;  // closing our own socket; cannot be reported
    wire->socket.close(ignored);
  });
}

asio::awaitable<EngineResult<int>> HttpConnection::send(const HttpRequest& request) {
  http::request<http::string_body> message;
  message.version(11);
  message.method_string(request.method);
  message.target(request.target);
  message.set(http::field::host, "docker");
  message.set(http::field::user_agent, "agents-sandbox");
  if (!request.registry_auth.empty()) message.set("X-Registry-Auth", request.registry_auth);

  if (co_await is_cancelled()) co_return cancelled();
  if (!request.body.empty()) {
    message.set(http::field::content_type, "application/json");
    message.body() = request.body;
  }
  message.prepare_payload();
  auto [problem, length] = co_await http::async_write(wire_->socket, message, kAwait);
  if (problem) co_return std::unexpected(wire_->translate(problem));

  wire_->answer.emplace();
  if (request.method == "HEAD") wire_->answer->skip(true);
  wire_->answer->header_limit(kLongestHead);
  wire_->answer->body_limit(boost::none);  // read_all() has its own limit
  while (!wire_->answer->is_header_done()) {
    problem = co_await wire_->parse_some();
    if (problem) co_return std::unexpected(wire_->translate(problem));
  }
  co_return wire_->answer->get().result_int();
}

asio::awaitable<EngineResult<std::string>> HttpConnection::read_some() {
  auto& answer = *wire_->answer;
  while (!answer.is_done()) {
    if (co_await is_cancelled()) co_return cancelled();
    auto& body = answer.get().body();
    body.data = wire_->piece.data();
    body.size = wire_->piece.size();
    const error_code problem = co_await wire_->parse_some();
    if (problem && problem != http::error::need_buffer) {
      co_return std::unexpected(wire_->translate(problem));
    }
    const std::size_t length = wire_->piece.size() - body.size;
    if (length > 0) co_return std::string(wire_->piece.data(), length);
  }
  co_return std::string();
}

asio::awaitable<EngineResult<std::string>> HttpConnection::read_all(std::size_t limit) {
  std::string all;
  while (true) {
    EngineResult<std::string> piece = co_await read_some();
    if (!piece) co_return std::unexpected(std::move(piece.error()));
    if (piece->empty()) co_return all;
    if (all.size() + piece->size() > limit) {
      co_return engine_fail(EngineErrorKind::Garbled, "the engine's answer has more than " +
                                                          std::to_string(limit) + " bytes");
    }
    all += *piece;
  }
}

std::string HttpConnection::header(std::string_view name) const {
  return std::string(wire_->answer->get()[name]);
}

bool HttpConnection::has_expired() const {
  return wire_->has_expired;
}

bool HttpConnection::is_reusable() const {
  return !wire_->has_expired && wire_->answer && wire_->answer->is_done() &&
         wire_->answer->get().keep_alive() && !wire_->answer->need_eof() &&
         wire_->buffer.size() == 0;
}

bool HttpConnection::is_idle() const {
  // Only we use the socket, so peeking past Asio is safe.
  char byte = 0;
  const ssize_t length = ::recv(wire_->socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace agbox
