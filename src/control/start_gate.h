// SPDX-License-Identifier: Apache-2.0
// Lets a few container starts through at a time. The engine does the same work either way, but when
// fifty sandboxes are asked for at once, the first ones are ready in a fraction of the time.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>

#include "base/result.h"

namespace agbox {

namespace asio = boost::asio;

class StartGate {
 public:
  StartGate(asio::io_context& io, int places) : io_(io), free_(places) {}

  // A place, given back when the pass ends.
  class Pass {
   public:
    explicit Pass(StartGate* gate) : gate_(gate) {}
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (gate_ != nullptr) gate_->leave();
    }

   private:
    StartGate* gate_;
  };

  // In the order of asking. CANCELLED where the caller was cancelled while it waited.
  asio::awaitable<Result<Pass>> enter();

 private:
  struct Waiting {
    explicit Waiting(asio::io_context& io) : timer(io, asio::steady_timer::time_point::max()) {}
    asio::steady_timer timer;
    bool has_place = false;
  };
  void leave();

  asio::io_context& io_;
  int free_;
  std::deque<std::shared_ptr<Waiting>> queue_;
};

}  // namespace agbox
