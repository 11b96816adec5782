// SPDX-License-Identifier: Apache-2.0
// What the guest of one sandbox reports by itself, implemented by that sandbox. Calls come on the
// control thread, and none after the link to the guest was closed.
#pragma once

#include <string>

#include "model/guest/exec_end.h"
#include "model/guest/guest_hello.h"

namespace agbox {

class GuestListener {
 public:
  // At every hello that was accepted.
  virtual void guest_connected(const GuestHello& hello) = 0;
  virtual void guest_lost(const std::string& why) = 0;
  // Only of an exec that this connection's guest was given or reported in its hello, and each once
  // per connection: an end that was not forgotten is reported again after a reconnect.
  virtual void exec_ended(const ExecEnd& end) = 0;
  // It was accepted by start_exec(), but could not be sent and never will be.
  virtual void exec_not_sent(const std::string& exec_id, const std::string& why) = 0;
  virtual void exec_truncated(const std::string& exec_id) = 0;

 protected:
  ~GuestListener() = default;  // the guest's link does not own it
};

}  // namespace agbox
