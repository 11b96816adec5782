// SPDX-License-Identifier: Apache-2.0
// The server behind FakeDocker: connections, faults, and the calls whose answers take their time.
// Everything happens on its loop.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/await.h"
#include "support/fake_docker/fake_engine.h"

namespace agbox::fake {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::local::stream_protocol;

// Those who wait go on when it is rung, and look for themselves what has changed.
class Bell {
 public:
  explicit Bell(asio::io_context& io) : timer_(io, asio::steady_timer::time_point::max()) {}
  void ring() { timer_.cancel(); }
  asio::awaitable<void> wait() { co_await timer_.async_wait(kAwait); }

 private:
  asio::steady_timer timer_;
};

enum class FaultKind { None, Reply, Hang, Drop, LoseAnswer, Garble, Hold };

struct Fault {
  FaultKind kind = FaultKind::None;
  std::string pattern{};
  int times = 0;
  int status = 0;
  std::string text{};
};

struct Session {
  explicit Session(asio::io_context& io) : socket(io) {}
  stream_protocol::socket socket;
  boost::beast::flat_buffer buffer;
  bool is_head = false;  // the request that is being answered
  // An event stream: what is still to be sent, and whether it matches the client's filter.
  bool is_event_stream = false;
  json::object filters{};
  std::deque<std::string> events{};
};

struct Server : std::enable_shared_from_this<Server> {
  explicit Server(asio::io_context& loop);

  asio::io_context& io;
  stream_protocol::acceptor acceptor;
  Bell bell;
  std::string directory;
  std::string socket_path;
  Engine engine;
  std::list<std::shared_ptr<Session>> sessions;
  std::list<Fault> faults;
  std::multiset<std::string> released;
  std::multiset<std::string> held_calls;
  std::vector<std::string> abandoned_calls;
  std::vector<std::string> log;
  std::vector<std::string> named_log;  // the same calls, see Engine::named()

  void begin();
  void listen();
  void stop();
  void spawn(asio::awaitable<void> task);
  static asio::awaitable<void> accept(std::shared_ptr<Server> self);
  static asio::awaitable<void> serve(std::shared_ptr<Server> self,
                                     std::shared_ptr<Session> session);
  // Whether the connection goes on.
  asio::awaitable<bool> handle(Session& session, http::request<http::string_body> message);
  asio::awaitable<bool> perform(Session& session, const Request& request);
  asio::awaitable<void> perform_silently(const Request& request);
  static std::string between(const std::string& text, std::string_view before,
                             std::string_view after);
  static void read_query(std::string_view text, std::map<std::string, std::string>& into);
  std::optional<Reply> version_problem(const std::string& version) const;
  Fault take_fault(const std::string& call, const std::string& named);
  // Until the condition holds; false when the client went away before.
  template <class Condition>
  asio::awaitable<bool> wait_until(Session& session, Condition holds);
  asio::awaitable<bool> wait_for_release(Session& session, const Fault& fault,
                                         const std::string& call);
  asio::awaitable<bool> write(Session& session, const Reply& reply);
  // An answer without a length, which ends with the connection.
  static asio::awaitable<bool> write_head(Session& session);
  static asio::awaitable<bool> write_chunk(Session& session, const std::string& text);
  static asio::awaitable<bool> write_last_chunk(Session& session);
  asio::awaitable<bool> wait_container(Session& session, const Request& request);
  // Until the container ends.
  asio::awaitable<bool> follow_log(Session& session, const Request& request);
  // What a process prints ends with the connection.
  asio::awaitable<bool> start_exec(Session& session, const Request& request);
  static std::string pulled_reference(const Request& request);
  void finish_pull(const Request& request);
  // Its lines may be held back one by one: "PULL <reference> <line>" is a call for faults too.
  asio::awaitable<bool> pull(Session& session, const Request& request);
  void publish(const json::object& event);
  asio::awaitable<bool> send_events(Session& session, const Request& request);
};

}  // namespace agbox::fake
