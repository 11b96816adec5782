// SPDX-License-Identifier: Apache-2.0
// The daemon's end of one sandbox's link.
//
//   Closed --expect()--> Listening --proven--> Greeting --prepared--> Connected
//                            ^                    |                      |
//                            +------ lost --------+----------------------+
//
// Anyone in the sandbox may connect: a connection takes the single slot only after it has proven
// the secret of this container start, or is the first of a start that nobody has seen. While the
// slot is taken nobody listens. Everything runs on the executor's one thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/task_group.h"
#include "base/log.h"
#include "base/result.h"
#include "guestlink/connection.h"
#include "guestlink/guest_report.h"
#include "guestlink/link_folder.h"
#include "guestlink/waiters.h"

namespace agbox::guestlink {

struct LinkLimits {
  uid_t guest_uid = 0;  // who may speak at all: the guest is its container's root
  std::chrono::milliseconds handshake{5000};
  std::chrono::milliseconds preparation{30000};
  std::size_t unproven_connections = 8;
  // After a guest that broke the protocol: it may come back, but not in a tight loop.
  std::chrono::milliseconds penalty{1000};
};

struct MountExpected {
  std::string target;
  bool anonymous_volume = false;
};

struct Expectation {
  // Of a container start that was seen before; none for a new one, whose first connection is the
  // guest's because nothing else runs in it before go().
  std::optional<std::string> secret;
  PeerProcess process;  // what is known of it: the engine's State.Pid, or that of an earlier hello
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> supplemental_gids;
  std::string image_user;
  std::vector<MountExpected> mounts;
};

struct GoOrder {
  std::string secret;  // new_secret(), stored before it is handed out
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::string working_directory = "/workspace";
  std::chrono::milliseconds entrypoint_limit{60000};
};

struct LinkEvents {
  std::function<void(const GuestHello&)> connected;  // at every hello that was taken in
  std::function<void(const std::string& why)> lost;
};

class GuestLink : public std::enable_shared_from_this<GuestLink> {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  GuestLink(boost::asio::any_io_executor executor, LinkFolder folder, LinkLimits limits,
            LinkEvents events, TaskGroup& tasks, Logger log);

  const LinkFolder& folder() const { return folder_; }

  // Forgets what was and listens for the guest of a container start.
  Result<> expect(Expectation expectation);
  // The guest's words once it is here and has prepared its container.
  boost::asio::awaitable<Result<GuestHello>> hello(Deadline deadline);
  Result<> go(const GoOrder& order);
  // How the entrypoint went. A lost connection is waited out: the guest tells it again.
  boost::asio::awaitable<Result<EntrypointOutcome>> entrypoint(Deadline deadline);
  boost::asio::awaitable<Result<>> ping(std::chrono::milliseconds limit);
  Result<> stop();
  // For good; everyone who waits gets an error.
  void close();

 private:
  bool listening() const { return acceptor_.is_open(); }
  Result<> listen();
  void stop_listening();
  // A coroutine that is spawned holds the link from its first moment: it may begin only after the
  // link was forgotten.
  using Self = std::shared_ptr<GuestLink>;
  boost::asio::awaitable<void> accept(Self self, unsigned round);
  void admit(Connection::Socket socket);
  boost::asio::awaitable<void> converse(Self self, std::shared_ptr<Connection> connection,
                                        unsigned epoch);
  boost::asio::awaitable<std::optional<GuestHello>> identify(
      std::shared_ptr<Connection> connection);
  bool is_proven(const guest::v1::Hello& said, const guest::v1::Proof& proof,
                 const std::string& nonce) const;
  boost::asio::awaitable<bool> greet(std::shared_ptr<Connection> connection, GuestHello hello);
  boost::asio::awaitable<void> serve(std::shared_ptr<Connection> connection);
  bool on_message(Connection& connection, const guest::v1::ToDaemon& message);
  void on_lost(const Connection& connection);
  boost::asio::awaitable<void> listen_again(Self self, std::chrono::milliseconds pause,
                                            unsigned epoch);
  std::unexpected<Error> absent() const;

  boost::asio::any_io_executor executor_;
  LinkFolder folder_;
  LinkLimits limits_;
  LinkEvents events_;
  TaskGroup& tasks_;
  Logger log_;
  Waiters waiters_;

  bool closed_ = false;
  unsigned epoch_ = 0;  // raised by expect() and close(): what began before it has no say any more
  Expectation expectation_;
  std::optional<std::string> secret_;  // once handed out or expected
  PeerProcess process_;                // that the next connection must be

  boost::asio::local::stream_protocol::acceptor acceptor_;
  unsigned round_ = 0;  // of listening: an acceptor is opened again and again
  std::set<std::shared_ptr<Connection>> unproven_;
  std::shared_ptr<Connection> guest_;  // has the slot
  std::optional<GuestHello> hello_;    // while it is connected and has prepared its container
  bool gone_ = false;                  // go() was said in this container start
  std::optional<EntrypointOutcome> outcome_;
  std::uint64_t next_ping_ = 1;
  std::set<std::uint64_t> pings_;  // sent and not answered
  std::string last_problem_ = "it has not connected yet";
};

// Random; for one container start.
std::string new_secret();

}  // namespace agbox::guestlink
