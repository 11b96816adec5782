// SPDX-License-Identifier: Apache-2.0
// Limits how many coroutines of one thread proceed concurrently, in FIFO order.
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

  // Released on destruction.
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

  // CANCELLED if the caller was cancelled while waiting.
  boost::asio::awaitable<Result<Permit>> acquire();

 private:
  void release();

  boost::asio::any_io_executor executor_;
  int free_;
  std::deque<std::shared_ptr<Event>> queue_;
};

}  // namespace agbox
