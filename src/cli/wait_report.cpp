// SPDX-License-Identifier: Apache-2.0
#include "cli/wait_report.h"

#include <utility>

#include "cli/format/elapsed.h"

namespace agbox::cli {

namespace {

using namespace std::chrono_literals;

constexpr auto kSilence = 2s;
constexpr auto kBetweenLines = 1s;

}  // namespace

WaitReport::WaitReport(Console& console, const Clock& clock, std::string what)
    : console_(console), clock_(clock), began_(clock.boot_now()), what_(std::move(what)) {
  if (console.is_terminal())
    ticker_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

WaitReport::~WaitReport() {
  if (!ticker_.joinable()) return;
  ticker_.request_stop();
  ticker_.join();
  console_.clear_status();
}

void WaitReport::show(const std::string& what) {
  const std::lock_guard lock(mutex_);
  what_ = what;
  console_.status(line());
}

void WaitReport::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto never = [] { return false; };
  ended_.wait_for(lock, stop, kSilence, never);
  while (!stop.stop_requested()) {
    console_.status(line());
    ended_.wait_for(lock, stop, kBetweenLines, never);
  }
}

std::string WaitReport::line() const {
  return what_ + " " + seconds_text(clock_.boot_now() - began_);
}

}  // namespace agbox::cli
