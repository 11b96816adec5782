// SPDX-License-Identifier: Apache-2.0
// Gives every container that a FakeDocker starts a guest: a program on the test's loop that does
// what agbox-guest does on its link, over the real socket, and comes back when the daemon does. A
// guest ends with its container.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "support/fake_docker/fake_docker.h"
#include "unit/guestlink/scripted_guest.h"

namespace agbox {

// How guests that start from now on behave.
struct GuestScript {
  bool connects = true;
  bool answers_go = true;
  std::string preparation_failure{};
  std::function<void(guest::v1::Prepared&)> alters_preparation{};
  // Of the connections that it is to try; nothing: it does not tell.
  std::optional<guest::v1::ConnectionTried::Outcome> reaches =
      guest::v1::ConnectionTried::OUTCOME_REFUSED;
  std::string copy_failure{};        // of every copy; it is read up to its end either way
  std::string entrypoint_failure{};  // the last that the entrypoint wrote before it ended
  // A cancel ends its exec at once, as HOW_CANCELLED; else it waits for the test.
  bool cancel_ends_execs = true;
  // What becomes of a pipe for the input of an exec.
  guest::v1::InputAttached::Outcome input = guest::v1::InputAttached::OUTCOME_ATTACHED;
};

// An exec that a guest was given and not told to forget.
struct GivenExec {
  guest::v1::StartExec order;
  UniqueFd out;  // for the test to write to
  UniqueFd err;
  std::optional<guest::v1::CancelExec> cancel{};
  std::optional<guest::v1::ExecEnded> end{};  // told at every connection
  std::vector<UniqueFd> inputs{};             // reading ends
  std::vector<guest::v1::ToGuest> orders{};   // about its input and terminal
};

class LivingGuests {
 public:
  LivingGuests(boost::asio::any_io_executor executor, FakeDocker& docker);
  LivingGuests(const LivingGuests&) = delete;

  GuestScript script;
  // Called when a guest has begun an exec: for those who do not wait for it on the same thread.
  std::function<void(const std::string& container, const std::string& exec_id)> on_begun{};

  // Guests that are connected and welcomed, by container name.
  bool is_connected(const std::string& container) const;
  // The order that the guest got, or nothing.
  const guest::v1::Go* order(const std::string& container) const;
  // Nothing where the guest does not have it. A guest's execs end with its container.
  GivenExec* exec(const std::string& container, const std::string& exec_id) const;
  // The exec's end, told now or when the daemon is back. `end` needs no id.
  void end_exec(const std::string& container, const std::string& exec_id, int exit_code);
  void end_exec(const std::string& container, const std::string& exec_id, guest::v1::ExecEnded end);
  void truncate_exec(const std::string& container, const std::string& exec_id);
  // Every exec that was really begun, by all guests and in this order: a second order for an exec
  // that is known begins nothing.
  const std::vector<std::string>& begun() const { return begun_; }
  // The targets of what was copied into containers, in this order.
  const std::vector<std::string>& copied() const { return copied_; }
  // The archive that was last copied to this target; empty if none was.
  std::string tree(const std::string& container_id, const std::string& target) const {
    const auto found = trees_.find({container_id, target});
    return found == trees_.end() ? std::string() : found->second;
  }
  // The connections that guests were to try, in this order.
  const std::vector<guest::v1::TryConnection>& tried() const { return tried_; }
  // A word of the test's own choice, for guests that lie.
  void say(const std::string& container, const guest::v1::ToDaemon& message);
  // On its next connection the guest lists these execs too, which it was never given.
  void claim(const std::string& container, std::vector<std::string> exec_ids);
  // Ends the connection; the guest comes back.
  void cut(const std::string& container);
  // Its container is paused: once its connection is gone it does not come back before it is thawed.
  void freeze(const std::string& container);
  void thaw(const std::string& container);

  int alive() const { return alive_; }
  // As if the containers had died with the engine: ends them all.
  void end_all();

 private:
  struct Guest;
  void begin(const fake::Container& container);
  void end_those_without_a_container();
  boost::asio::awaitable<void> live(std::shared_ptr<Guest> self);
  boost::asio::awaitable<void> converse(std::shared_ptr<Guest> self);
  void on_exec_message(Guest& self, const guest::v1::ToGuest& message);
  Guest* find(const std::string& container) const;

  boost::asio::any_io_executor executor_;
  FakeDocker& docker_;
  std::map<std::string, std::shared_ptr<Guest>> guests_;  // by container id
  std::vector<std::string> begun_;
  std::vector<std::string> copied_;
  std::map<std::pair<std::string, std::string>, std::string> trees_;  // by container id and target
  std::vector<guest::v1::TryConnection> tried_;
  int alive_ = 0;
};

}  // namespace agbox
