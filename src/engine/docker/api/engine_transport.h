// SPDX-License-Identifier: Apache-2.0
// Carries calls to the engine. It finds out who is behind the socket before the first call and
// again whenever a connection broke, keeps idle connections for the next call, and gives every call
// its deadline. Which calls there are is EngineClient's affair.
//
// A session is one acquaintance with one engine. It lives as long as at least one connection of it
// does: only then is it certain that the engine behind the socket is still the same.
//
// One thread: everything happens on the executor's. A call may be cancelled (asio's terminal
// cancellation); it then answers Cancelled, and so does every further call of the same coroutine,
// which no longer throws when it awaits.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "async/condition.h"
#include "engine/docker/api/engine_call.h"
#include "engine/docker/api/engine_error.h"
#include "engine/docker/api/engine_identity.h"
#include "engine/docker/api/http_connection.h"

namespace agbox {

struct EngineOptions {
  std::string socket_path;
  // Whether an engine may be used at all; see judge().
  std::function<Result<>(const EngineIdentity&)> judge = agbox::judge;
  // Told of the engine each time that we got to know it: at first and after every reconnect.
  std::function<void(const EngineIdentity&)> on_engine_seen{};
  std::size_t largest_answer = std::size_t{64} << 20;
  std::size_t idle_connections = 8;
};

struct CallOptions {
  // Instead of the call's own.
  std::optional<std::chrono::milliseconds> deadline{};
  // The id of the engine that is meant; any, where it is empty. Another one counts as unreachable.
  std::string expected_engine{};
};

struct EngineRequest {
  EngineCall call;
  std::string object{};  // takes the place of {} in the path; messages name it
  std::string query{};
  std::string body{};
  std::string content_type = "application/json";
  std::string registry_auth{};
  BodySource body_source{};
};

// One acquaintance with an engine; see above.
struct EngineSession {
  EngineIdentity engine;
  std::vector<std::unique_ptr<HttpConnection>> idle;
  std::size_t open_connections = 0;
  bool has_ended = false;

  void end() {
    has_ended = true;
    open_connections -= idle.size();
    idle.clear();
  }
};

// A connection while a call uses it.
class ConnectionLease {
 public:
  ConnectionLease(std::shared_ptr<EngineSession> session,
                  std::unique_ptr<HttpConnection> connection)
      : session_(std::move(session)), connection_(std::move(connection)) {}
  ConnectionLease(ConnectionLease&&) noexcept = default;
  ConnectionLease& operator=(ConnectionLease&&) = delete;
  ~ConnectionLease();

  HttpConnection* operator->() const { return connection_.get(); }
  EngineSession& session() const { return *session_; }
  // Back to the idle ones, if it can be used again.
  void give_back(std::size_t idle_limit);

 private:
  std::shared_ptr<EngineSession> session_;  // calls may outlive the transport's interest in it
  std::unique_ptr<HttpConnection> connection_;
};

// An answer that comes in pieces; the connection is its own until it is destroyed.
class EngineStream {
 public:
  EngineStream(ConnectionLease lease, EngineCall call, std::string object)
      : lease_(std::move(lease)), call_(call), object_(std::move(object)) {}

  // The next piece; empty at the end.
  boost::asio::awaitable<EngineResult<std::string>> read_some();
  void set_deadline(EngineDeadline deadline) { lease_->set_deadline(deadline); }

 private:
  ConnectionLease lease_;
  EngineCall call_;
  std::string object_;
};

class EngineTransport {
 public:
  EngineTransport(boost::asio::any_io_executor executor, EngineOptions options);

  // The body of a good answer (2xx and 304).
  boost::asio::awaitable<EngineResult<std::string>> call(EngineRequest request,
                                                         CallOptions options);
  // A good answer whose body is still to come.
  boost::asio::awaitable<EngineResult<EngineStream>> open(EngineRequest request,
                                                          CallOptions options);
  // The engine of the session; begins one where there is none.
  boost::asio::awaitable<EngineResult<EngineIdentity>> engine(CallOptions options);
  // Asks who is there on a connection of its own, and does not judge.
  boost::asio::awaitable<EngineResult<EngineIdentity>> identify(CallOptions options);

  const boost::asio::any_io_executor& executor() const { return executor_; }

 private:
  struct Acquaintance {
    EngineIdentity engine;
    std::unique_ptr<HttpConnection> connection;
  };
  boost::asio::awaitable<EngineResult<Acquaintance>> get_acquainted(EngineDeadline deadline);
  boost::asio::awaitable<EngineResult<>> begin_session(EngineDeadline deadline);
  boost::asio::awaitable<EngineResult<ConnectionLease>> lease(const EngineRequest& request,
                                                              const CallOptions& options);
  boost::asio::awaitable<EngineResult<ConnectionLease>> send(const EngineRequest& request,
                                                             const CallOptions& options);

  boost::asio::any_io_executor executor_;
  EngineOptions options_;
  std::shared_ptr<EngineSession> session_;
  bool is_beginning_ = false;
  Condition session_begun_;  // or could not be
};

}  // namespace agbox
