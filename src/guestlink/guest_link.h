// SPDX-License-Identifier: Apache-2.0
// The daemon's end of one sandbox's link.
//
//   Closed --expect()--> Listening --proven--> Greeting --its execs are known--> Connected
//                            ^                    |                                 |
//                            +------ lost --------+---------------------------------+
//
// Any process in the sandbox may connect: a connection takes the single slot only after it has
// proven the secret of this container start, or is the first of a start that was not seen before.
// Once the guest's process is known, connections of others are closed before they can say anything.
// While the slot is taken the link does not listen. Everything runs on the executor's one thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/condition.h"
#include "async/task_group.h"
#include "base/log.h"
#include "base/rare_line.h"
#include "base/result.h"
#include "guestlink/connection.h"
#include "guestlink/guest_report.h"
#include "guestlink/known_execs.h"
#include "guestlink/link_directory.h"
#include "guestlink/orders.h"
#include "guestlink/output_files.h"
#include "model/guest/exec_order.h"
#include "model/guest/file_order.h"
#include "model/guest/guest_error.h"
#include "model/guest/guest_listener.h"
#include "model/guest/input_report.h"
#include "model/guest/tree_order.h"
#include "model/network/network_probe.h"

namespace agbox::guestlink {

struct LinkLimits {
  uid_t guest_uid = 0;  // the only user that may connect: the guest is its container's root
  std::chrono::milliseconds handshake{5000};
  std::chrono::milliseconds preparation{30000};
  std::size_t unproven_connections = 8;
  // The minimum time between two accepted guests; after a protocol violation it must pass in full.
  // A guest may reconnect, but not in a tight loop.
  std::chrono::milliseconds penalty{1000};
  // While the slot is free any process inside may connect. Whatever waits is accepted, so that the
  // guest finds space in the queue, but not all the time: a crowd must not keep the daemon busy.
  unsigned connections_at_once = LinkDirectory::kQueueLength;
  // Of these, the ones that may be the guest's, and cost more.
  unsigned handshakes_at_once = 16;
  std::chrono::milliseconds between_connections{100};
  std::chrono::milliseconds between_log_lines{10000};
  // How long the kernel may refuse to send an exec's files, before the exec fails.
  std::chrono::milliseconds hand_over{2000};
};

class GuestLink : public std::enable_shared_from_this<GuestLink> {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  GuestLink(const asio::any_io_executor& executor, LinkDirectory directory, LinkLimits limits,
            GuestListener& listener, TaskGroup& tasks, Logger log);

  const LinkDirectory& directory() const { return directory_; }

  // Discards the previous state and listens for the guest of a container start.
  GuestResult<> expect(Expectation expectation);
  // The container may have ended: callers that wait for the guest, now or next, get MayHaveEnded
  // once, so that they can inspect it.
  void container_may_have_ended();
  // The guest's hello, once it is connected and has prepared its container.
  asio::awaitable<GuestResult<GuestHello>> hello(Deadline deadline);
  // Sent again on the next connection if the guest loses this one before it has read the order.
  GuestResult<> go(const GoOrder& order);
  // The outcome of the entrypoint. Waits out a lost connection: the guest reports it again.
  asio::awaitable<GuestResult<EntrypointOutcome>> entrypoint(Deadline deadline);
  asio::awaitable<GuestResult<>> ping(std::chrono::milliseconds limit);
  // Has the guest try a connection from inside. An error: the guest did not report the result.
  asio::awaitable<GuestResult<ProbeReport>> probe(ProbeTarget target);
  // Has the guest unpack what comes from the pipe, before go(). The ID is for tree_report().
  GuestResult<std::uint64_t> receive_tree(const TreeOrder& order, UniqueFd pipe);
  // An error: the guest did not report, and has not unpacked it or does not any more. Call once.
  asio::awaitable<GuestResult<TreeReport>> tree_report(std::uint64_t id, Deadline deadline);
  GuestResult<> stop();

  // Has the guest copy files through the pipe, after go(). The ID is for files_report(). Either end
  // of the pipe may stay open after the report.
  GuestResult<std::uint64_t> transfer_files(const FileOrder& order, UniqueFd pipe);
  // An error: the guest did not report, and does not copy any more. Waits as long as it takes; if
  // the caller is cancelled, so is the copy. Call once.
  asio::awaitable<GuestResult<FilesReport>> files_report(std::uint64_t id);

  // An error means that the guest did not get the order and never will: nothing of it is kept.
  Result<> start_exec(const ExecOrder& order, OutputFiles files);
  Result<> cancel_exec(const std::string& exec_id, std::chrono::milliseconds grace);
  Result<> forget_exec(const std::string& exec_id);
  // Has the guest pass on what comes from the pipe to the input of an exec. The ID is for
  // input_report().
  Result<std::uint64_t> attach_input(const std::string& exec_id, UniqueFd pipe);
  // An error: the guest did not report. Call once.
  asio::awaitable<GuestResult<InputReport>> input_report(std::uint64_t id, Deadline deadline);
  // The pipes are closed: the input ends once the guest has passed on what they have.
  Result<> end_input(const std::string& exec_id);
  Result<> resize_terminal(const std::string& exec_id, TerminalSize size);
  Result<> signal_exec(const std::string& exec_id, int number);
  // That of the latest connection.
  const PeerProcess& process() const { return process_; }
  bool is_connected() const { return hello_ && hello_->failure.empty(); }
  // That both sides speak; 0 if it is not connected.
  std::uint32_t protocol() const { return hello_ ? hello_->protocol : 0; }
  // Fails with the reason if start_exec() would be refused now.
  Result<> takes_execs() const;

  // Final; all waiters get an error. The listener is not called any more.
  void close();

 private:
  bool listening() const { return acceptor_.is_open(); }
  GuestResult<> listen();
  void stop_listening();
  // A spawned coroutine holds the link from the beginning: it may start only after the link's owner
  // has released it.
  using Self = std::shared_ptr<GuestLink>;
  asio::awaitable<void> accept(Self self, unsigned round);
  // Returns whether a handshake has begun.
  bool admit(Connection::Socket socket);
  void log_refusal(const Peer& peer, const std::string& problem);
  asio::awaitable<void> converse(Self self, std::shared_ptr<Connection> connection, unsigned epoch);
  asio::awaitable<std::optional<GuestHello>> identify(std::shared_ptr<Connection> connection);
  bool is_proven(const PeerProcess& process, const guest::v1::Hello& opened_with,
                 const guest::v1::Proof& proof, const std::string& nonce) const;
  asio::awaitable<bool> greet(std::shared_ptr<Connection> connection, GuestHello hello);
  asio::awaitable<bool> read_known_execs(std::shared_ptr<Connection> connection,
                                         std::vector<std::string>& execs);
  asio::awaitable<void> serve(std::shared_ptr<Connection> connection);
  bool on_message(Connection& connection, const guest::v1::ToDaemon& message);
  void entrypoint_ended(EntrypointOutcome outcome);
  bool on_connection_tried(Connection& connection, const guest::v1::ConnectionTried& tried);
  bool on_input_attached(Connection& connection, const guest::v1::InputAttached& attached);
  void take_input_report(std::uint64_t id, InputReport report);
  Result<> send_of_exec(const std::string& exec_id, const guest::v1::ToGuest& message);
  bool on_tree_received(Connection& connection, const guest::v1::TreeReceived& received);
  bool on_files_done(Connection& connection, const guest::v1::FilesDone& done);
  void on_exec_refused(const std::string& exec_id, const std::string& why);
  bool on_exec_ended(Connection& connection, const guest::v1::ExecEnded& ended);
  bool on_exec_truncated(Connection& connection, const std::string& exec_id);
  void on_lost(const Connection& connection);
  std::chrono::milliseconds delay_after(const Connection& connection) const;
  asio::awaitable<void> listen_again(Self self, std::chrono::milliseconds delay, unsigned epoch);
  // Waits for a report of the guest, which is stored in a member.
  template <class T>
  asio::awaitable<GuestResult<T>> wait_for(const std::optional<T>& report, Deadline deadline);
  static std::unexpected<GuestError> cancelled();
  std::unexpected<GuestError> not_connected() const;
  std::unexpected<GuestError> may_have_ended();

  asio::any_io_executor executor_;
  LinkDirectory directory_;
  LinkLimits limits_;
  GuestListener& listener_;
  TaskGroup& tasks_;
  Logger log_;
  Condition changed_;

  bool closed_ = false;
  unsigned epoch_ = 0;  // raised by expect() and close(): invalidates what began before
  Expectation expectation_;
  std::optional<std::string> secret_;  // once sent or expected
  PeerProcess process_;                // which the next connection must be

  asio::local::stream_protocol::acceptor acceptor_;
  unsigned round_ = 0;  // of listening: the acceptor is reopened many times
  std::set<std::shared_ptr<Connection>> unproven_;
  std::shared_ptr<Connection> guest_;  // has the slot
  std::chrono::steady_clock::time_point taken_in_;
  std::optional<GuestHello> hello_;  // while it is connected and has prepared its container
  bool gone_ = false;                // go() was called in this container start
  std::optional<guest::v1::ToGuest> unconfirmed_go_;  // until the guest shows that it has it
  bool may_have_ended_ = false;                       // and not reported yet
  std::optional<EntrypointOutcome> outcome_;
  std::uint64_t next_ping_ = 1;
  std::set<std::uint64_t> pings_;  // sent and not answered
  std::uint64_t next_probe_ = 1;
  // Sent and not answered; the waiter holds the storage for the report.
  std::map<std::uint64_t, std::weak_ptr<std::optional<ProbeReport>>> probes_;
  std::uint64_t next_tree_ = 1;
  std::map<std::uint64_t, std::optional<TreeReport>> trees_;  // of this connection
  std::uint64_t next_files_ = 1;
  std::map<std::uint64_t, std::optional<FilesReport>> files_;  // of this connection
  // Begins anywhere: a runner may still answer an order of the previous daemon.
  std::uint64_t next_input_;
  struct PendingInput {
    std::optional<InputReport> report{};
    bool is_awaited = true;
  };
  std::map<std::uint64_t, PendingInput> inputs_;  // of this connection
  KnownExecs execs_;                              // of this connection
  std::string last_problem_ = "it has not connected yet";
  RareLine refusals_;
  RareLine losses_;
};

}  // namespace agbox::guestlink
