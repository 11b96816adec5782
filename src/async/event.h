// SPDX-License-Identifier: Apache-2.0
// Something that has happened or not. Coroutines of the executor's one thread wait for it; those
// that wait and those that come later go on alike. It outlives whoever waits.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

namespace agbox {

class Event {
 public:
  explicit Event(const boost::asio::any_io_executor& executor)
      : waiting_(executor, boost::asio::steady_timer::time_point::max()) {}

  bool is_set() const { return is_set_; }
  void set() {
    is_set_ = true;
    waiting_.cancel();
  }
  // One that waits and was not run since set() waits on.
  void reset() { is_set_ = false; }

  // True once it is set; false when the caller was cancelled before that.
  boost::asio::awaitable<bool> wait();
  // For one that must not give up, whoever asks it to.
  boost::asio::awaitable<void> wait_uncancelled();

 private:
  bool is_set_ = false;
  boost::asio::steady_timer waiting_;  // never expires: its cancellation wakes everybody
};

}  // namespace agbox
