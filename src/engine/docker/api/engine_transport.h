// SPDX-License-Identifier: Apache-2.0
// Transports calls to the engine. It identifies the engine before the first call and again after a
// connection broke, pools idle connections, and enforces deadlines. The calls themselves are
// defined by EngineClient.
//
// A session is the result of one handshake with one engine. It lasts as long as at least one of its
// connections: only then is it certain that the engine behind the socket is still the same.
//
// Single-threaded: everything runs on the executor's thread. A call may be cancelled (terminal
// cancellation); it then returns Cancelled, as does every further call of the same coroutine, in
// which co_await no longer throws.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "async/condition.h"
#include "engine/docker/api/engine_call.h"
#include "engine/docker/api/engine_identity.h"
#include "engine/docker/api/http_connection.h"
#include "engine/engine_error.h"

namespace agbox {

struct EnginePatience {
  // Instead of each call's own deadline; for tests.
  std::optional<std::chrono::milliseconds> call{};
  // With a container that is being removed: the kernel may need minutes to end its processes.
  std::chrono::milliseconds removal = std::chrono::minutes(2);
};

struct EngineOptions {
  std::string socket_path;
  // Whether an engine may be used; see judge().
  std::function<Result<>(const EngineIdentity&)> judge = agbox::judge;
  // Called after every handshake: the first and after each reconnect.
  std::function<void(const EngineIdentity&)> on_engine_seen{};
  std::size_t largest_answer = std::size_t{64} << 20;
  EnginePatience patience{};
};

struct CallOptions {
  // Overrides the call's own.
  std::optional<std::chrono::milliseconds> deadline{};
  // The ID of the required engine; empty: any. Another engine counts as unreachable.
  std::string expected_engine{};
};

struct EngineRequest {
  EngineCall call;
  std::string object{};  // replaces {} in the path and appears in messages
  std::string query{};
  std::string body{};
  std::function<std::string(ApiVersion)> make_body{};  // instead, if it depends on the version
  std::string registry_auth{};
  std::string answer_header{};  // which has the answer, instead of the body
};

// The result of one handshake; see above.
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

// A connection in use by a call.
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
  // Returns it to the pool, if reusable.
  void give_back();

 private:
  std::shared_ptr<EngineSession> session_;  // calls may outlive the transport's reference
  std::unique_ptr<HttpConnection> connection_;
};

// A streamed answer; owns its connection.
class EngineStream {
 public:
  EngineStream(ConnectionLease lease, EngineCall call, std::string object)
      : lease_(std::move(lease)), call_(call), object_(std::move(object)) {}

  // The next chunk; empty at the end. TimedOut after the deadline of a call about one container.
  asio::awaitable<EngineResult<std::string>> read_some();
  void set_deadline(EngineDeadline deadline) { lease_->set_deadline(deadline); }

 private:
  ConnectionLease lease_;
  EngineCall call_;
  std::string object_;
};

class EngineTransport {
 public:
  EngineTransport(asio::any_io_executor executor, EngineOptions options);

  // The body of a successful answer (2xx or 304), or the header that the request names.
  asio::awaitable<EngineResult<std::string>> call(EngineRequest request, CallOptions options);
  // A successful answer whose body follows.
  asio::awaitable<EngineResult<EngineStream>> open(EngineRequest request, CallOptions options);
  // The session's engine; begins a session if there is none.
  asio::awaitable<EngineResult<EngineIdentity>> engine(CallOptions options);
  // Identifies the engine on a separate connection, without judging it.
  asio::awaitable<EngineResult<EngineIdentity>> identify(CallOptions options);

  const asio::any_io_executor& executor() const { return executor_; }
  const EnginePatience& patience() const { return options_.patience; }

 private:
  struct Handshake {
    EngineIdentity engine;
    std::unique_ptr<HttpConnection> connection;
  };
  asio::awaitable<EngineResult<Handshake>> do_handshake(EngineDeadline deadline);
  asio::awaitable<EngineResult<>> begin_session(EngineDeadline deadline);
  asio::awaitable<EngineResult<ConnectionLease>> lease(const EngineRequest& request,
                                                       const CallOptions& options);
  asio::awaitable<EngineResult<ConnectionLease>> send(const EngineRequest& request,
                                                      const CallOptions& options);

  EngineDeadline deadline_of(EngineCall call, const CallOptions& options) const;
  // What became of a call whose connection failed.
  asio::awaitable<EngineError> failure(const EngineRequest& request, const ConnectionLease& used,
                                       EngineError error);
  asio::awaitable<bool> answers_others();

  asio::any_io_executor executor_;
  EngineOptions options_;
  std::shared_ptr<EngineSession> session_;
  bool is_beginning_ = false;
  Condition session_begun_;  // or failed to
};

}  // namespace agbox
