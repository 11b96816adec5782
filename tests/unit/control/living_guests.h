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
#include <string>
#include <vector>

#include "support/fake_docker/fake_docker.h"
#include "unit/guestlink/scripted_guest.h"

namespace agbox {

// How guests that start from now on behave.
struct GuestScript {
  bool connects = true;
  bool answers_go = true;
  std::string preparation_failure{};
  std::string entrypoint_failure{};  // the last that the entrypoint wrote before it ended
};

class LivingGuests {
 public:
  LivingGuests(boost::asio::any_io_executor executor, FakeDocker& docker);
  LivingGuests(const LivingGuests&) = delete;

  GuestScript script;

  // Guests that are connected and welcomed, by container name.
  bool is_connected(const std::string& container) const;
  // The order that the guest got, or nothing.
  const guest::v1::Go* order(const std::string& container) const;
  int alive() const { return alive_; }
  // As if the containers had died with the engine: ends them all.
  void end_all();

 private:
  struct Guest;
  void begin(const fake::Container& container);
  void end_those_without_a_container();
  static boost::asio::awaitable<void> live(std::shared_ptr<Guest> self);
  static boost::asio::awaitable<void> converse(std::shared_ptr<Guest> self);

  boost::asio::any_io_executor executor_;
  FakeDocker& docker_;
  std::map<std::string, std::shared_ptr<Guest>> guests_;  // by container id
  int alive_ = 0;
};

}  // namespace agbox
