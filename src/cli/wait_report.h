// SPDX-License-Identifier: Apache-2.0
// While it exists, a terminal shows what is waited for and for how long: nothing during the first
// two seconds, then a line that is rewritten every second. Other outputs stay as they are.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "base/clock.h"
#include "cli/console.h"

namespace agbox::cli {

class WaitReport {
 public:
  // `what`: "Waiting for sandbox box-1 to be ready".
  WaitReport(Console& console, const Clock& clock, std::string what);
  ~WaitReport();
  WaitReport(const WaitReport&) = delete;
  WaitReport& operator=(const WaitReport&) = delete;

  // What happens now, instead of `what`; shown at once.
  void show(const std::string& what);

 private:
  void run(const std::stop_token& stop);
  std::string line() const;

  Console& console_;
  const Clock& clock_;
  const BootTime began_;
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::string what_;
  // Only on a terminal. The waiting thread is blocked in a call to the daemon, so another one shows
  // how long that takes.
  std::jthread ticker_;
};

}  // namespace agbox::cli
