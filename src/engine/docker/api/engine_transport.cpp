// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/engine_transport.h"

#include "async/await.h"
#include "async/cancellation.h"
#include "engine/docker/api/refusal.h"
#include "engine/docker/api/url_query.h"

namespace agbox {

namespace {

constexpr std::size_t kLargestRefusal = 256UL * 1024;
constexpr std::size_t kMostIdleConnections = 8;

std::string target_of(const EngineRequest& request, ApiVersion api) {
  std::string path(route_of(request.call).path);
  if (const std::size_t place = path.find("{}"); place != std::string::npos) {
    // Only image references contain slashes, colons and an at sign.
    path.replace(place, 2, percent_encode(request.object, "/:@"));
  }
  std::string target = "/v" + api.text() + path;
  if (!request.query.empty()) target += "?" + request.query;
  return target;
}

HttpRequest http_request(const EngineRequest& request, ApiVersion api) {
  return {.method = std::string(route_of(request.call).method),
          .target = target_of(request, api),
          .body = request.make_body ? request.make_body(api) : request.body,
          .registry_auth = request.registry_auth};
}

bool is_good(int http_status) {
  return (http_status >= 200 && http_status < 300) || http_status == 304;
}

asio::awaitable<EngineResult<std::string>> ask(HttpConnection& connection, EngineCall call,
                                               const std::string& target) {
  const HttpRequest request{.method = std::string(route_of(call).method), .target = target};
  AGBOX_CO_TRY(status, co_await connection.send(request));
  AGBOX_CO_TRY(body, co_await connection.read_all(std::size_t{4} << 20));
  if (status != 200) co_return std::unexpected(refusal(call, {}, status, body));
  co_return body;
}

}  // namespace

ConnectionLease::~ConnectionLease() {
  if (!connection_) return;
  // While other connections of the session are open, the engine is still the same.
  if (--session_->open_connections == 0) session_->end();
}

void ConnectionLease::give_back() {
  if (session_->has_ended || !connection_->is_reusable()) return;
  // One is enough to keep the session.
  if (session_->idle.size() >= kMostIdleConnections) return;
  connection_->set_deadline(std::nullopt);
  session_->idle.push_back(std::move(connection_));
}

asio::awaitable<EngineResult<std::string>> EngineStream::read_some() {
  EngineResult<std::string> piece = co_await lease_->read_some();
  if (piece) co_return piece;
  if (lease_->has_expired() && route_of(call_).can_hang_alone) {
    co_return engine_fail(EngineErrorKind::TimedOut,
                          describe(call_, object_) + ": " + piece.error().message());
  }
  if (piece.error().is_open()) lease_.session().end();
  co_return std::unexpected(piece.error().within(describe(call_, object_)));
}

EngineTransport::EngineTransport(asio::any_io_executor executor, EngineOptions options)
    : executor_(std::move(executor)), options_(std::move(options)), session_begun_(executor_) {}

EngineDeadline EngineTransport::deadline_of(EngineCall call, const CallOptions& options) const {
  auto limit = options.deadline ? options.deadline : route_of(call).deadline;
  if (!options.deadline && limit && options_.patience.call) limit = options_.patience.call;
  if (!limit) return std::nullopt;
  return std::chrono::steady_clock::now() + *limit;
}

asio::awaitable<EngineResult<EngineTransport::Handshake>> EngineTransport::do_handshake(
    EngineDeadline deadline) {
  AGBOX_CO_TRY(connection, co_await HttpConnection::connect(options_.socket_path, deadline));
  AGBOX_CO_TRY(version_body, co_await ask(*connection, EngineCall::Version,
                                          std::string(route_of(EngineCall::Version).path)));
  AGBOX_CO_TRY(version, read_engine_version(version_body));
  const Result<ApiVersion> api = negotiate(version);
  if (!api) co_return engine_fail(EngineErrorKind::Unfit, api.error().message());
  const std::string target = "/v" + api->text() + std::string(route_of(EngineCall::Info).path);
  AGBOX_CO_TRY(info_body, co_await ask(*connection, EngineCall::Info, target));
  AGBOX_CO_TRY(engine, read_engine_identity(info_body, version, *api));
  co_return Handshake{std::move(engine), std::move(connection)};
}

asio::awaitable<EngineResult<>> EngineTransport::begin_session(EngineDeadline deadline) {
  AGBOX_CO_TRY(found, co_await do_handshake(deadline));
  if (const Result<> verdict = options_.judge(found.engine); !verdict) {
    co_return engine_fail(EngineErrorKind::Unfit, verdict.error().message());
  }
  session_ = std::make_shared<EngineSession>();
  session_->engine = std::move(found.engine);
  if (found.connection->is_reusable()) {
    found.connection->set_deadline(std::nullopt);
    session_->idle.push_back(std::move(found.connection));
    session_->open_connections = 1;
  }
  if (options_.on_engine_seen) options_.on_engine_seen(session_->engine);
  co_return EngineResult<>{};
}

asio::awaitable<EngineResult<ConnectionLease>> EngineTransport::lease(const EngineRequest& request,
                                                                      const CallOptions& options) {
  const EngineDeadline deadline = deadline_of(request.call, options);
  // Even a call without a deadline does not wait forever for the handshake.
  const EngineDeadline introduction =
      deadline ? deadline : deadline_of(EngineCall::Info, CallOptions{});
  while (true) {
    if (co_await is_cancelled()) co_return engine_fail(EngineErrorKind::Cancelled, "cancelled");
    while (session_ && !session_->has_ended && !session_->idle.empty()) {
      if (!session_->idle.back()->is_idle()) {  // the engine is gone, possibly replaced
        session_->end();
        break;
      }
      std::unique_ptr<HttpConnection> connection = std::move(session_->idle.back());
      session_->idle.pop_back();
      connection->set_deadline(deadline);
      co_return ConnectionLease(session_, std::move(connection));
    }
    if (session_ && !session_->has_ended) {
      const std::shared_ptr<EngineSession> session = session_;
      auto connection = co_await HttpConnection::connect(options_.socket_path, deadline);
      if (!connection) {
        if (connection.error().is_open()) session->end();
        co_return std::unexpected(std::move(connection.error()));
      }
      if (session->has_ended) continue;  // may lead to another engine already
      ++session->open_connections;
      co_return ConnectionLease(session, std::move(*connection));
    }
    if (is_beginning_) {
      const bool is_over =
          co_await session_begun_.wait([this] { return !is_beginning_; }, *introduction);
      if (!is_over && !co_await is_cancelled()) {
        co_return engine_fail(EngineErrorKind::Unavailable, "the engine is unreachable");
      }
      continue;
    }
    is_beginning_ = true;
    const EngineResult<> begun = co_await begin_session(introduction);
    is_beginning_ = false;
    session_begun_.notify();
    if (!begun) co_return std::unexpected(begun.error());
  }
}

asio::awaitable<EngineResult<ConnectionLease>> EngineTransport::send(const EngineRequest& request,
                                                                     const CallOptions& options) {
  if (co_await is_cancelled()) co_return engine_fail(EngineErrorKind::Cancelled, "cancelled");
  AGBOX_CO_TRY(used, co_await lease(request, options));
  const EngineIdentity& engine = used.session().engine;
  if (!options.expected_engine.empty() && options.expected_engine != engine.id) {
    EngineError error(EngineErrorKind::Unavailable,
                      "another engine (" + engine.id + ") is behind " + options_.socket_path +
                          " now; bring the engine " + options.expected_engine + " back");
    used.give_back();
    co_return std::unexpected(std::move(error));
  }
  EngineResult<int> status = co_await used->send(http_request(request, engine.api));
  if (!status) co_return std::unexpected(co_await failure(request, used, status.error()));
  if (is_good(*status)) co_return std::move(used);

  EngineResult<std::string> body = co_await used->read_all(kLargestRefusal);
  if (!body) co_return std::unexpected(co_await failure(request, used, body.error()));
  EngineError error = refusal(request.call, request.object, *status, *body);
  if (is_version_mismatch(error)) {
    used.session().end();
    co_return engine_fail(EngineErrorKind::Unavailable, error.message());
  }
  used.give_back();
  co_return std::unexpected(std::move(error));
}

asio::awaitable<EngineError> EngineTransport::failure(const EngineRequest& request,
                                                      const ConnectionLease& used,
                                                      EngineError error) {
  const bool is_silent = used->has_expired() && route_of(request.call).can_hang_alone;
  if (is_silent && co_await answers_others()) {
    co_return EngineError(EngineErrorKind::TimedOut,
                          error.message() +
                              ", although it answers other calls; restart the engine, which may "
                              "hang over this container, and try again");
  }
  if (error.is_open()) used.session().end();
  co_return error;
}

asio::awaitable<bool> EngineTransport::answers_others() {
  const EngineDeadline deadline = deadline_of(EngineCall::Ping, {});
  auto connection = co_await HttpConnection::connect(options_.socket_path, deadline);
  if (!connection) co_return false;
  const std::string target(route_of(EngineCall::Ping).path);
  co_return (co_await ask(**connection, EngineCall::Ping, target)).has_value();
}

asio::awaitable<EngineResult<std::string>> EngineTransport::call(EngineRequest request,
                                                                 CallOptions options) {
  EngineResult<ConnectionLease> used = co_await send(request, options);
  if (!used && used.error().http_status() != 0) {
    co_return std::unexpected(std::move(used.error()));  // already names the attempt
  }
  if (!used) {
    co_return std::unexpected(used.error().within(describe(request.call, request.object)));
  }
  EngineResult<std::string> body = co_await (*used)->read_all(options_.largest_answer);
  if (!body) {
    const EngineError error = co_await failure(request, *used, body.error());
    co_return std::unexpected(error.within(describe(request.call, request.object)));
  }
  if (!request.answer_header.empty()) body = (*used)->header(request.answer_header);
  used->give_back();
  co_return body;
}

asio::awaitable<EngineResult<EngineStream>> EngineTransport::open(EngineRequest request,
                                                                  CallOptions options) {
  EngineResult<ConnectionLease> used = co_await send(request, options);
  if (used) co_return EngineStream(std::move(*used), request.call, request.object);
  if (used.error().http_status() != 0) co_return std::unexpected(std::move(used.error()));
  co_return std::unexpected(used.error().within(describe(request.call, request.object)));
}

asio::awaitable<EngineResult<EngineIdentity>> EngineTransport::engine(CallOptions options) {
  const EngineRequest request{.call = EngineCall::Info};
  if (co_await is_cancelled()) co_return engine_fail(EngineErrorKind::Cancelled, "cancelled");
  AGBOX_CO_TRY(used, co_await lease(request, options));
  EngineIdentity engine = used.session().engine;
  used.give_back();
  co_return engine;
}

asio::awaitable<EngineResult<EngineIdentity>> EngineTransport::identify(CallOptions options) {
  if (co_await is_cancelled()) co_return engine_fail(EngineErrorKind::Cancelled, "cancelled");
  AGBOX_CO_TRY(found, co_await do_handshake(deadline_of(EngineCall::Info, options)));
  co_return std::move(found.engine);
}

}  // namespace agbox
