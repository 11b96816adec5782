// SPDX-License-Identifier: Apache-2.0
#include "async/boot_timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.h"

namespace agbox {
namespace {

namespace asio = boost::asio;

int open_timer() {
  const int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  AGBOX_CHECK(fd >= 0, "timerfd_create");
  return fd;
}

void set_timer(int fd, std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  itimerspec expiry{};
  expiry.it_value.tv_sec = seconds.count();
  expiry.it_value.tv_nsec = (time - seconds).count();
  AGBOX_CHECK(::timerfd_settime(fd, 0, &expiry, nullptr) == 0, "timerfd_settime");
}

}  // namespace

BootTimer::BootTimer(const asio::any_io_executor& executor, std::function<void()> on_expiry)
    : on_expiry_(std::move(on_expiry)), timer_(executor, open_timer()) {}

void BootTimer::expires_after(std::chrono::nanoseconds time) {
  // Zero would disarm the timer.
  set_timer(timer_.native_handle(), std::max(time, std::chrono::nanoseconds(1)));
  wait();
}

void BootTimer::cancel() {
  set_timer(timer_.native_handle(), std::chrono::nanoseconds(0));
}

void BootTimer::wait() {
  if (is_waiting_) return;
  is_waiting_ = true;
  timer_.async_wait(asio::posix::descriptor_base::wait_read,
                    [this](const boost::system::error_code& closed) {
                      if (closed) return;  // `this` may be destroyed
                      is_waiting_ = false;
                      std::uint64_t expiries = 0;
                      const auto got = ::read(timer_.native_handle(), &expiries, sizeof expiries);
                      // Rearmed between the expiry and this read: no longer due.
                      if (got != sizeof expiries) return wait();
                      on_expiry_();
                    });
}

}  // namespace agbox
