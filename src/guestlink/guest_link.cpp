// SPDX-License-Identifier: Apache-2.0
#include "guestlink/guest_link.h"

#include <algorithm>
#include <cstring>

#include "async/await.h"
#include "async/cancellation.h"
#include "base/hex.h"
#include "guestlink/orders.h"
#include "guestwire/place.h"
#include "guestwire/proof.h"

namespace agbox::guestlink {
namespace {

namespace v1 = guest::v1;
// The kernel limits a command line, including the environment, to 2 MiB.
constexpr std::size_t kMaxGo = std::size_t{1} << 20;
constexpr const char* kAnotherProcess = "it is another process's";

std::uint64_t random_number() {
  std::uint64_t number = 0;
  const std::string bytes = guestwire::random_bytes(sizeof number);
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

}  // namespace

GuestLink::GuestLink(const asio::any_io_executor& executor, LinkDirectory directory,
                     LinkLimits limits, GuestListener& listener, TaskGroup& tasks, Logger log)
    : executor_(executor),
      directory_(std::move(directory)),
      limits_(limits),
      listener_(listener),
      tasks_(tasks),
      log_(std::move(log)),
      changed_(executor_),
      acceptor_(executor_),
      next_input_(random_number()),
      refusals_(limits.between_log_lines),
      losses_(limits.between_log_lines) {}

GuestResult<> GuestLink::expect(Expectation expectation) {
  ++epoch_;
  stop_listening();
  if (auto former = std::exchange(guest_, nullptr)) former->close("its container starts again");
  hello_.reset();
  outcome_.reset();
  pings_.clear();
  probes_.clear();
  trees_.clear();
  inputs_.clear();
  files_.clear();
  execs_.clear();
  may_have_ended_ = false;
  unconfirmed_go_.reset();
  gone_ = expectation.secret.has_value();
  secret_ = expectation.secret;
  process_ = expectation.process;
  expectation_ = std::move(expectation);
  last_problem_ = "it has not connected yet";
  changed_.notify();
  return listen();
}

GuestResult<> GuestLink::listen() {
  AGBOX_TRY(fd, directory_.listen());
  boost::system::error_code problem;
  acceptor_.assign(asio::local::stream_protocol(), fd.get(), problem);
  if (problem) {
    directory_.stop_listening();
    return guest_fail(GuestErrorKind::Unavailable, "listening for the guest: " + problem.message());
  }
  fd.release();
  tasks_.spawn("guest link accept", accept(shared_from_this(), ++round_));
  return {};
}

void GuestLink::stop_listening() {
  if (listening()) {
    boost::system::error_code ignored;  // the descriptor is closed either way
    acceptor_.close(ignored);
    directory_.stop_listening();
  }
  for (const auto& connection : std::exchange(unproven_, {})) {
    connection->close("the guest is here already");
  }
}

asio::awaitable<void> GuestLink::accept(Self self, unsigned round) {
  const auto is_over = [&] { return round != round_ || !listening(); };
  while (!is_over()) {
    unsigned handshakes = limits_.handshakes_at_once;
    for (unsigned left = limits_.connections_at_once; left > 0 && handshakes > 0; --left) {
      Connection::Socket socket(executor_);
      const auto [problem] = co_await acceptor_.async_accept(socket, kAwait);
      if (is_over()) co_return;
      if (problem) {  // out of descriptors, most likely: wait until one is closed
        log_.warn("cannot accept a guest's connection", {{"problem", problem.message()}});
        break;
      }
      if (admit(std::move(socket))) --handshakes;
    }
    const auto next = std::chrono::steady_clock::now() + limits_.between_connections;
    co_await changed_.wait(is_over, next);
  }
}

// Checks a connection before its first message. A crowd of other processes ends here, so the checks
// that cost least come first, and none of them takes a place of the guest.
bool GuestLink::admit(Connection::Socket socket) {
  auto peer = peer_of(socket.native_handle());
  if (!peer) return false;
  const auto refuse = [&](const char* problem) {
    log_refusal(*peer, problem);
    return false;
  };
  const auto may_be_guest = [&] {
    return peer->uid == limits_.guest_uid && peer->process.may_be(process_);
  };
  if (!may_be_guest()) return refuse(kAnotherProcess);
  if (unproven_.size() >= limits_.unproven_connections) {
    return refuse("too many are not authenticated yet");
  }
  peer->process.start_time = start_time_of(peer->process.pid);
  if (!may_be_guest()) return refuse(kAnotherProcess);
  // Next to other processes, one that has ended or began later may have any pid.
  const auto is_engines = [&] {
    const auto& [pid, start_time] = peer->process;
    const bool is_old = start_time != 0 && start_time <= expectation_.started_by;
    const bool is_known = process_.pid != 0;
    return pid == 0 || (is_old && (is_known || may_have_pid_outside(pid, expectation_.engine_pid)));
  };
  if (expectation_.engine_pid != 0 && !is_engines()) return refuse(kAnotherProcess);
  auto connection =
      std::make_shared<Connection>(std::move(socket), *peer, limits_.hand_over, tasks_);
  connection->limit_time(limits_.handshake);
  unproven_.insert(connection);
  tasks_.spawn("guest link", converse(shared_from_this(), connection, epoch_));
  return true;
}

void GuestLink::log_refusal(const Peer& peer, const std::string& problem) {
  const auto left_out = refusals_.is_due();
  if (!left_out) return;
  log_.warn("refused a connection that is not authenticated as the guest's",
            {{"problem", problem},
             {"uid", peer.uid},
             {"pid", peer.process.pid},
             {"others_since_last_line", *left_out}});
}

asio::awaitable<void> GuestLink::converse(Self self, std::shared_ptr<Connection> connection,
                                          unsigned epoch) {
  auto hello = co_await identify(connection);
  unproven_.erase(connection);
  if (!hello || epoch != epoch_ || guest_) {
    connection->close("not taken in");
    log_refusal(connection->peer(), connection->problem());
    co_return;
  }
  guest_ = connection;
  taken_in_ = std::chrono::steady_clock::now();
  stop_listening();
  if (co_await greet(connection, std::move(*hello))) co_await serve(connection);
  if (guest_ == connection) on_lost(*connection);
}

asio::awaitable<std::optional<GuestHello>> GuestLink::identify(
    std::shared_ptr<Connection> connection) {
  const auto opening = co_await connection->read();
  if (!opening) co_return std::nullopt;
  if (!opening->has_hello()) {
    connection->violation("something before its hello");
    co_return std::nullopt;
  }
  const v1::Hello& opened_with = opening->hello();
  GuestHello hello;
  hello.process = connection->peer().process;
  hello.build_id = to_hex(std::string_view(opened_with.build_id()).substr(0, 64));
  hello.protocol = std::min(opened_with.protocol_max(), guestwire::kProtocolMax);
  const auto phase = to_phase(opened_with.phase());
  if (!phase) {
    connection->violation("a hello without a phase");
    co_return std::nullopt;
  }
  hello.phase = *phase;
  if (hello.protocol < opened_with.protocol_min() || hello.protocol < guestwire::kProtocolMin) {
    last_problem_ = "it speaks protocol " + std::to_string(opened_with.protocol_min()) + " to " +
                    std::to_string(opened_with.protocol_max()) + ", the daemon " +
                    std::to_string(guestwire::kProtocolMin) + " to " +
                    std::to_string(guestwire::kProtocolMax);
    connection->close(last_problem_);
    co_return std::nullopt;
  }

  const std::string nonce = guestwire::random_bytes(guestwire::kNonceSize);
  v1::ToGuest challenge;
  challenge.mutable_challenge()->set_protocol(hello.protocol);
  challenge.mutable_challenge()->set_nonce(nonce);
  if (!connection->send(challenge)) co_return std::nullopt;
  const auto answer = co_await connection->read();
  if (!answer) co_return std::nullopt;
  if (!answer->has_proof() || !is_proven(hello.process, opened_with, answer->proof(), nonce)) {
    connection->violation("no proof of this container start's secret");
    co_return std::nullopt;
  }
  if (!answer->proof().mac().empty()) unconfirmed_go_.reset();
  // Only the report of an authenticated guest counts.
  if (gone_ && !outcome_ && *phase == GuestPhase::Passed) entrypoint_ended({});
  if (gone_ && !outcome_ && *phase == GuestPhase::Failed) {
    entrypoint_ended({to_failure(opened_with.failure()).value_or(EntrypointFailure{})});
  }
  co_return hello;
}

bool GuestLink::is_proven(const PeerProcess& process, const v1::Hello& opened_with,
                          const v1::Proof& proof, const std::string& nonce) const {
  if (secret_ && !proof.mac().empty()) return guestwire::proves(proof.mac(), *secret_, nonce);
  // A guest with a secret that we do not know belongs to another start.
  if (opened_with.has_secret() || !proof.mac().empty()) return false;
  if (!secret_)
    return opened_with.phase() == v1::PHASE_FRESH || opened_with.phase() == v1::PHASE_PREPARED;
  // The guest may have lost its Go. If not, code of the image is running: then only the kernel's
  // report that this is the process that the Go was sent to excludes other processes.
  const bool is_same_process = process.pid != 0 && process.start_time != 0 && process == process_;
  return unconfirmed_go_ && is_same_process && opened_with.phase() == v1::PHASE_PREPARED;
}

// The guest has the slot; now both sides exchange what they need to know.
asio::awaitable<bool> GuestLink::greet(std::shared_ptr<Connection> connection, GuestHello hello) {
  connection->lift_limits();
  connection->limit_time(limits_.preparation);
  process_ = connection->peer().process;
  if (!connection->send(welcome_for(expectation_))) co_return false;
  const auto answer = co_await connection->read();
  if (!answer || guest_ != connection) co_return false;
  if (!answer->has_prepared()) {
    connection->violation("something other than how it prepared its container");
    co_return false;
  }
  fill(hello, answer->prepared());
  if (!co_await read_known_execs(connection, hello.execs)) co_return false;
  if (hello.phase == GuestPhase::Fresh) hello.phase = GuestPhase::Prepared;
  connection->lift_limits();
  hello_ = hello;
  if (unconfirmed_go_ && !connection->send(*unconfirmed_go_)) co_return false;
  last_problem_ = "it is connected, but silent";
  log_.debug("the guest is connected", {{"pid", hello.process.pid}, {"build_id", hello.build_id}});
  listener_.guest_connected(hello);
  changed_.notify();
  co_return true;
}

asio::awaitable<void> GuestLink::serve(std::shared_ptr<Connection> connection) {
  while (guest_ == connection) {
    const auto message = co_await connection->read();
    if (!message || guest_ != connection) co_return;
    if (!on_message(*connection, *message)) co_return;
  }
}

bool GuestLink::on_message(Connection& connection, const v1::ToDaemon& message) {
  switch (message.body_case()) {
    case v1::ToDaemon::kPong:
      if (pings_.erase(message.pong().id()) == 0) {
        connection.violation("an answer to a ping that was not sent");
        return false;
      }
      changed_.notify();
      return true;
    case v1::ToDaemon::kConnectionTried:
      return on_connection_tried(connection, message.connection_tried());
    case v1::ToDaemon::kTreeReceived:
      return on_tree_received(connection, message.tree_received());
    case v1::ToDaemon::kFilesDone:
      return on_files_done(connection, message.files_done());
    case v1::ToDaemon::kEntrypointPassed:
    case v1::ToDaemon::kEntrypointFailed: {
      if (!gone_ || outcome_) {
        connection.violation("the entrypoint's end at a moment when none can be");
        return false;
      }
      EntrypointOutcome outcome;
      if (message.has_entrypoint_failed()) {
        outcome.failure = to_failure(message.entrypoint_failed());
        if (!outcome.failure) {
          connection.violation("a failure without a cause");
          return false;
        }
      }
      unconfirmed_go_.reset();
      entrypoint_ended(std::move(outcome));
      return true;
    }
    case v1::ToDaemon::kExecEnded:
      return on_exec_ended(connection, message.exec_ended());
    case v1::ToDaemon::kExecTruncated:
      return on_exec_truncated(connection, message.exec_truncated().exec_id());
    case v1::ToDaemon::kInputAttached:
      return on_input_attached(connection, message.input_attached());
    case v1::ToDaemon::kHello:
    case v1::ToDaemon::kProof:
    case v1::ToDaemon::kPrepared:
    case v1::ToDaemon::kExecsKnown:
    case v1::ToDaemon::BODY_NOT_SET:
      break;
  }
  connection.violation("what has no place in this conversation");
  return false;
}

void GuestLink::entrypoint_ended(EntrypointOutcome outcome) {
  outcome_ = std::move(outcome);
  changed_.notify();
}

void GuestLink::on_lost(const Connection& connection) {
  guest_.reset();
  hello_.reset();
  pings_.clear();
  probes_.clear();
  trees_.clear();
  inputs_.clear();
  files_.clear();
  execs_.clear();
  last_problem_ = "its connection ended: " + connection.problem();
  if (closed_) return;
  if (const auto left_out = losses_.is_due()) {
    log_.warn("the guest's connection ended",
              {{"problem", connection.problem()}, {"others_since_last_line", *left_out}});
  }
  tasks_.spawn("guest link listen again",
               listen_again(shared_from_this(), delay_after(connection), epoch_));
  listener_.guest_lost(connection.problem());
  changed_.notify();
}

std::chrono::milliseconds GuestLink::delay_after(const Connection& connection) const {
  if (connection.misbehaved()) return limits_.penalty;
  const auto next = taken_in_ + limits_.penalty;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(next - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

asio::awaitable<void> GuestLink::listen_again(Self self, std::chrono::milliseconds delay,
                                              unsigned epoch) {
  const auto is_over = [&] { return epoch != epoch_; };
  while (!co_await changed_.wait(is_over, std::chrono::steady_clock::now() + delay)) {
    const auto listening = listen();
    if (listening) co_return;
    log_.error("cannot listen for the guest", {{"problem", listening.error().message()}});
    delay = limits_.penalty;
  }
}

std::unexpected<GuestError> GuestLink::cancelled() {
  return guest_fail(GuestErrorKind::Cancelled, "gave up waiting for the guest");
}

std::unexpected<GuestError> GuestLink::not_connected() const {
  return guest_fail(GuestErrorKind::Silent, closed_
                                                ? "the guest's link was closed"
                                                : "the guest does not answer: " + last_problem_);
}

void GuestLink::container_may_have_ended() {
  may_have_ended_ = true;
  changed_.notify();
}

std::unexpected<GuestError> GuestLink::may_have_ended() {
  may_have_ended_ = false;
  return guest_fail(GuestErrorKind::MayHaveEnded, "the guest's container may have ended");
}

template <class T>
asio::awaitable<GuestResult<T>> GuestLink::wait_for(const std::optional<T>& report,
                                                    Deadline deadline) {
  const auto self = shared_from_this();
  const unsigned epoch = epoch_;
  const auto is_over = [&] { return report || epoch != epoch_ || may_have_ended_; };
  const bool is_in_time = co_await changed_.wait(is_over, deadline);
  if (!is_in_time && co_await is_cancelled()) co_return cancelled();
  if (!is_in_time || epoch != epoch_) co_return not_connected();
  if (!report) co_return may_have_ended();
  co_return *report;
}

asio::awaitable<GuestResult<GuestHello>> GuestLink::hello(Deadline deadline) {
  return wait_for(hello_, deadline);
}

GuestResult<> GuestLink::go(const GoOrder& order) {
  if (!hello_) return not_connected();
  if (!hello_->failure.empty()) {
    return guest_fail(GuestErrorKind::Refused,
                      "the guest could not prepare its container: " + hello_->failure);
  }
  if (order.secret.size() != guestwire::kSecretSize) {
    return guest_fail(GuestErrorKind::Refused, "a guest's secret has 32 bytes");
  }
  if (gone_ && secret_ != order.secret) {
    return guest_fail(GuestErrorKind::Refused,
                      "Go was sent with another secret in this container start");
  }
  v1::ToGuest message = go_for(order);
  if (message.ByteSizeLong() > kMaxGo) {
    return guest_fail(GuestErrorKind::Refused,
                      "command: longer than 1 MiB together with the entrypoint");
  }
  secret_ = order.secret;
  gone_ = true;
  if (!guest_->send(message)) return not_connected();
  unconfirmed_go_ = std::move(message);
  return {};
}

asio::awaitable<GuestResult<EntrypointOutcome>> GuestLink::entrypoint(Deadline deadline) {
  return wait_for(outcome_, deadline);
}

GuestResult<> GuestLink::stop() {
  if (!guest_) return not_connected();
  v1::ToGuest message;
  message.mutable_stop();
  if (!guest_->send(message)) return not_connected();
  return {};
}

void GuestLink::close() {
  closed_ = true;
  ++epoch_;
  stop_listening();
  if (auto former = std::exchange(guest_, nullptr)) former->close("the link is closed");
  hello_.reset();
  trees_.clear();
  inputs_.clear();
  files_.clear();
  changed_.notify();
}

}  // namespace agbox::guestlink
