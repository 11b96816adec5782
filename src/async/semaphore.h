// SPDX-License-Identifier: Apache-2.0
// Lets a few coroutines of one thread through at a time, in the order of asking.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <deque>
#include <memory>
#include <utility>

#include "async/event.h"
#include "base/result.h"

namespace agbox {

class Semaphore {
 public:
  Semaphore(boost::asio::any_io_executor executor, int permits)
      : executor_(std::move(executor)), free_(permits) {}
  Semaphore(const Semaphore&) = delete;

  // Given back when it goes.
  class Permit {
   public:
    explicit Permit(Semaphore* semaphore) : semaphore_(semaphore) {}
    Permit(Permit&& other) noexcept : semaphore_(std::exchange(other.semaphore_, nullptr)) {}
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (semaphore_ != nullptr) semaphore_->release();
    }

   private:
    Semaphore* semaphore_;
  };

  // CANCELLED when the caller was cancelled while it waited.
  boost::asio::awaitable<Result<Permit>> acquire();

 private:
  void release();

  boost::asio::any_io_executor executor_;
  int free_;
  std::deque<std::shared_ptr<Event>> queue_;
};

}  // namespace agbox
