// SPDX-License-Identifier: Apache-2.0
#include "execlog/log_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/kernel_budget.h"
#include "base/unique_fd.h"

namespace agbox {
namespace {

// Written or truncated; or linked, renamed, removed.
constexpr std::uint32_t kMask = IN_MODIFY | IN_ATTRIB | IN_ONESHOT;

constexpr int kNoWatch = -1;  // waits for the timer
constexpr std::chrono::milliseconds kBetweenChecks{100};

}  // namespace

LogWatch::Wait::~Wait() {
  if (const auto watch = watch_.lock()) watch->forget(key_);
}

std::shared_ptr<LogWatch> LogWatch::make(const boost::asio::any_io_executor& executor) {
  std::shared_ptr<LogWatch> watch(new LogWatch(executor));
  watch->self_ = watch;
  watch->open();  // at once: later none may be left
  return watch;
}

LogWatch::Wait LogWatch::wait(int fd, std::function<void()> on_change) {
  const Wait::Key key{.descriptor = watch(fd), .number = ++last_number_};
  const bool is_first = waiters_[key.descriptor].empty();
  waiters_[key.descriptor].emplace(key.number, std::move(on_change));
  if (key.descriptor == kNoWatch && is_first) start_timer();
  return {self_, key};
}

// kNoWatch if the kernel refuses one.
int LogWatch::watch(int fd) {
  if (!inotify_.is_open()) open();
  if (!inotify_.is_open()) return kNoWatch;
  // The file itself, even if another one has its name now.
  const std::string file = "/proc/self/fd/" + std::to_string(fd);
  const int descriptor = ::inotify_add_watch(inotify_.native_handle(), file.c_str(), kMask);
  if (descriptor >= 0) return descriptor;
  if (errno == ENOSPC) note_refusal(KernelBudget::InotifyWatches);
  return kNoWatch;
}

void LogWatch::open() {
  UniqueFd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify) {
    if (errno == EMFILE) note_refusal(KernelBudget::InotifyInstances);
    return;
  }
  boost::system::error_code problem;
  inotify_.assign(inotify.get(), problem);
  if (problem) return;
  static_cast<void>(inotify.release());
  listen();
}

void LogWatch::start_timer() {
  timer_.expires_after(kBetweenChecks);
  timer_.async_wait([weak = self_](const boost::system::error_code& error) {
    const auto watch = weak.lock();
    if (error || !watch) return;
    watch->fire(kNoWatch);
    if (watch->waiters_.contains(kNoWatch)) watch->start_timer();
  });
}

void LogWatch::listen() {
  inotify_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [weak = self_](const boost::system::error_code& error) {
                        const auto watch = weak.lock();
                        if (error || !watch) return;  // it is being destroyed
                        watch->take_events();
                        watch->listen();
                      });
}

void LogWatch::take_events() {
  std::array<char, 16384> buffer;  // several events at a time; the kernel never splits one
  while (true) {
    const ssize_t got = ::read(inotify_.native_handle(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;  // EAGAIN: no more events
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      at += sizeof event + event.len;
      if ((event.mask & IN_Q_OVERFLOW) != 0) {
        fire_all();
      } else {
        fire(event.wd);
      }
    }
  }
}

// The callbacks may begin new waits and end others. The IN_IGNORED after a fired watch counts too:
// a wait that began while the kernel was removing that watch joined a dead watch.
void LogWatch::fire(int descriptor) {
  const std::uint64_t last = last_number_;
  while (const auto on_change = take_waiter(descriptor, last)) on_change();
}

// The first of those up to number `last`; nullptr if none is left.
std::function<void()> LogWatch::take_waiter(int descriptor, std::uint64_t last) {
  const auto found = waiters_.find(descriptor);
  if (found == waiters_.end() || found->second.begin()->first > last) return nullptr;
  auto waiter = found->second.extract(found->second.begin());
  if (found->second.empty()) waiters_.erase(found);
  return std::move(waiter.mapped());
}

// The kernel's queue was full and events are missing.
void LogWatch::fire_all() {
  std::vector<int> descriptors;
  descriptors.reserve(waiters_.size());
  for (const auto& [descriptor, waiters] : waiters_) descriptors.push_back(descriptor);
  for (const int descriptor : descriptors) fire(descriptor);
}

void LogWatch::forget(const Wait::Key& key) {
  const auto found = waiters_.find(key.descriptor);
  if (found == waiters_.end() || found->second.erase(key.number) == 0) return;  // it has fired
  if (!found->second.empty()) return;
  waiters_.erase(found);
  if (key.descriptor == kNoWatch) return;
  // An error means that it is firing now: its event then finds no waiter.
  ::inotify_rm_watch(inotify_.native_handle(), key.descriptor);
}

}  // namespace agbox
