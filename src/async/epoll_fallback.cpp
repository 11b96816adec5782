// SPDX-License-Identifier: Apache-2.0
#include "async/epoll_fallback.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/kernel_budget.h"
#include "base/unique_fd.h"

namespace agbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Time = steady_clock::time_point;

// poll() reports a descriptor for as long as it is ready, an edge-triggered watch once. So one that
// stays ready is reported again only after this time.
constexpr milliseconds kBetweenReports{10};
constexpr milliseconds kBetweenAttempts{1000};  // to add the descriptors to epoll after all

// These have the same values for poll() and epoll.
constexpr std::uint32_t kConditions =
    EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLERR | EPOLLHUP;
static_assert(EPOLLIN == POLLIN && EPOLLPRI == POLLPRI && EPOLLOUT == POLLOUT &&
              EPOLLERR == POLLERR && EPOLLHUP == POLLHUP);

std::atomic<bool> refuses_for_test{false};

int kernel_epoll_ctl(int epoll, int operation, int fd, epoll_event* event) {
  if (operation == EPOLL_CTL_ADD && refuses_for_test) {
    errno = ENOSPC;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_epoll_ctl, epoll, operation, fd, event));
}

int kernel_epoll_wait(int epoll, epoll_event* events, int size, int timeout) {
  // Not SYS_epoll_wait, which newer architectures do not have.
  return static_cast<int>(::syscall(SYS_epoll_pwait, epoll, events, size, timeout, nullptr, 8));
}

// Descriptors are closed without a call to epoll_ctl(), and their numbers are used again.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

std::optional<FileIdentity> identity_of(int fd) {
  struct stat found{};
  if (::fstat(fd, &found) != 0) return std::nullopt;
  return FileIdentity{.device = found.st_dev, .inode = found.st_ino};
}

class Instance {
 public:
  explicit Instance(int epoll) : epoll_(epoll), wake_up_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    add_wake_up();
  }

  int control(int operation, int fd, epoll_event* event);
  int wait(epoll_event* events, int size, int timeout);
  std::size_t refused() {
    const std::lock_guard lock(mutex_);
    return polled_.size();
  }

 private:
  struct Polled {
    epoll_event event;
    FileIdentity file;
    std::uint32_t reported = 0;  // and still so when last checked
    Time reported_at{};
  };

  void add_wake_up();
  void wake_waiter() const;
  void clear_wake_up() const;
  bool uses_poll();
  int without_wake_up(epoll_event* events, int count) const;
  int wait_with_poll(epoll_event* events, int size, int timeout);
  void add_to_epoll_again();
  std::vector<pollfd> to_poll();
  int take_ready(const std::vector<pollfd>& polled, epoll_event* events, int size);
  milliseconds ignore_reported(std::vector<pollfd>& polled);

  const int epoll_;
  // Interrupts a wait when a descriptor is refused while it lasts.
  const UniqueFd wake_up_;
  std::mutex mutex_;  // any thread may add a descriptor while another one waits
  bool is_wake_up_in_epoll_ = false;
  bool has_refused_ = false;
  std::map<int, Polled> polled_;
  Time next_attempt_{};
};

void Instance::add_wake_up() {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
  is_wake_up_in_epoll_ = kernel_epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_up_.get(), &event) == 0;
}

void Instance::wake_waiter() const {
  const std::uint64_t one = 1;
  // It fails only if it is set already.
  static_cast<void>(::write(wake_up_.get(), &one, sizeof one));
}

void Instance::clear_wake_up() const {
  std::uint64_t times = 0;
  static_cast<void>(::read(wake_up_.get(), &times, sizeof times));
}

int Instance::control(int operation, int fd, epoll_event* event) {
  const std::lock_guard lock(mutex_);
  const auto found = polled_.find(fd);
  if (operation == EPOLL_CTL_MOD && found != polled_.end()) {
    found->second.event = *event;
    found->second.reported = 0;  // a modified watch reports again what is ready
    wake_waiter();
    return 0;
  }
  if (found != polled_.end()) {
    // With ADD, the descriptor was closed and its number is used again.
    polled_.erase(found);
    if (operation == EPOLL_CTL_DEL) return 0;
  }
  const int outcome = kernel_epoll_ctl(epoll_, operation, fd, event);
  if (operation != EPOLL_CTL_ADD || outcome == 0) return outcome;
  // This number was added for another file, closed between our check and our attempt.
  if (errno == EEXIST && has_refused_) return kernel_epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, event);
  if (errno != ENOSPC || (event->events & (EPOLLONESHOT | EPOLLEXCLUSIVE)) != 0) return outcome;
  const auto file = identity_of(fd);
  if (!file) return outcome;
  note_refusal(KernelBudget::EpollWatches);
  has_refused_ = true;
  polled_.insert_or_assign(fd, Polled{.event = *event, .file = *file});
  wake_waiter();
  return 0;
}

bool Instance::uses_poll() {
  const std::lock_guard lock(mutex_);
  return !is_wake_up_in_epoll_ || !polled_.empty();
}

int Instance::wait(epoll_event* events, int size, int timeout) {
  if (uses_poll()) return wait_with_poll(events, size, timeout);
  const int count = kernel_epoll_wait(epoll_, events, size, timeout);
  const int others = without_wake_up(events, count);
  if (others != count) {
    const std::lock_guard lock(mutex_);
    clear_wake_up();  // the next call polls whatever was refused
  }
  return others;  // callers take none for the end of their time, and wait again
}

int Instance::without_wake_up(epoll_event* events, int count) const {
  if (count <= 0) return count;
  const auto is_ours = [this](const epoll_event& event) { return event.data.ptr == this; };
  return static_cast<int>(std::remove_if(events, events + count, is_ours) - events);
}

int Instance::wait_with_poll(epoll_event* events, int size, int timeout) {
  const Time end = steady_clock::now() + milliseconds(timeout);
  while (true) {
    std::vector<pollfd> polled = to_poll();
    if (::poll(polled.data(), polled.size(), 0) < 0) return -1;
    if (const int ready = take_ready(polled, events, size); ready != 0) return ready;

    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    if (timeout >= 0 && left.count() <= 0) return 0;
    milliseconds pause = ignore_reported(polled);
    if (timeout >= 0) pause = std::min(pause, left);
    if (::poll(polled.data(), polled.size(), static_cast<int>(pause.count())) < 0) return -1;
  }
}

// The epoll instance itself, our eventfd, and each refused descriptor that is still open.
std::vector<pollfd> Instance::to_poll() {
  const std::lock_guard lock(mutex_);
  clear_wake_up();
  std::erase_if(polled_,
                [](const auto& entry) { return identity_of(entry.first) != entry.second.file; });
  add_to_epoll_again();
  std::vector<pollfd> polled{{.fd = epoll_, .events = POLLIN, .revents = 0},
                             {.fd = wake_up_.get(), .events = POLLIN, .revents = 0}};
  polled.reserve(polled.size() + polled_.size());
  for (const auto& [fd, entry] : polled_) {
    const auto conditions = static_cast<short>(entry.event.events & kConditions);
    polled.push_back({.fd = fd, .events = conditions, .revents = 0});
  }
  return polled;
}

void Instance::add_to_epoll_again() {
  const Time now = steady_clock::now();
  if (now < next_attempt_) return;
  next_attempt_ = now + kBetweenAttempts;
  if (!is_wake_up_in_epoll_) add_wake_up();
  for (auto entry = polled_.begin(); entry != polled_.end(); entry = polled_.erase(entry)) {
    if (kernel_epoll_ctl(epoll_, EPOLL_CTL_ADD, entry->first, &entry->second.event) == 0) continue;
    note_refusal(KernelBudget::EpollWatches);
    return;
  }
}

int Instance::take_ready(const std::vector<pollfd>& polled, epoll_event* events, int size) {
  int count = 0;
  if (polled.front().revents != 0) {
    count = without_wake_up(events, kernel_epoll_wait(epoll_, events, size, 0));
    if (count < 0) return count;
  }
  const std::lock_guard lock(mutex_);
  const Time now = steady_clock::now();
  for (const pollfd& one : polled) {
    const auto found = polled_.find(one.fd);
    if (found == polled_.end()) continue;  // ours, or removed concurrently
    Polled& entry = found->second;
    const auto ready = static_cast<std::uint32_t>(one.revents) & kConditions;
    entry.reported &= ready;
    const bool is_edge_triggered = (entry.event.events & EPOLLET) != 0;
    const bool is_due = !is_edge_triggered || (ready & ~entry.reported) != 0 ||
                        now >= entry.reported_at + kBetweenReports;
    if (ready == 0 || !is_due || count == size) continue;
    events[count++] = {.events = ready, .data = entry.event.data};
    entry.reported = ready;
    entry.reported_at = now;
  }
  return count;
}

// Lets the next poll() wait for what is not reported yet. Returns for how long, because what is
// ready stays so and is reported again.
milliseconds Instance::ignore_reported(std::vector<pollfd>& polled) {
  const std::lock_guard lock(mutex_);
  milliseconds pause = kBetweenAttempts;
  for (pollfd& one : polled) {
    const auto found = polled_.find(one.fd);
    if (found == polled_.end() || found->second.reported == 0) continue;
    pause = kBetweenReports;
    one.events = static_cast<short>(one.events & ~static_cast<short>(found->second.reported));
    // These are reported regardless of what is requested.
    if ((found->second.reported & (EPOLLERR | EPOLLHUP)) != 0) one.fd = -1;
  }
  return pause;
}

// By the descriptor of the epoll instance. Never destroyed: threads of libraries wait until the
// process ends.
class Instances {
 public:
  static Instances& all() {
    static auto* const instances = new Instances;
    return *instances;
  }
  void add(int epoll) {
    const std::lock_guard lock(mutex_);
    by_descriptor_[epoll] = std::make_shared<Instance>(epoll);
  }
  std::shared_ptr<Instance> find(int epoll) {
    const std::lock_guard lock(mutex_);
    const auto found = by_descriptor_.find(epoll);
    return found == by_descriptor_.end() ? nullptr : found->second;
  }
  std::size_t refused() {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const auto& [epoll, instance] : by_descriptor_) count += instance->refused();
    return count;
  }

 private:
  std::mutex mutex_;
  // Shared with threads that wait on an instance while it is closed and its number used again.
  std::map<int, std::shared_ptr<Instance>> by_descriptor_;
};

}  // namespace

std::size_t descriptors_refused_by_epoll() {
  return Instances::all().refused();
}

void refuse_epoll_watches_for_test(bool refuse) {
  refuses_for_test = refuse;
}

}  // namespace agbox

// The C library's functions of these names are not called any more, by no part of the program.
extern "C" {

int epoll_create1(int flags) noexcept {
  const int epoll = static_cast<int>(::syscall(SYS_epoll_create1, flags));
  if (epoll >= 0) agbox::Instances::all().add(epoll);
  return epoll;
}

int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  if (const auto instance = agbox::Instances::all().find(epoll)) {
    return instance->control(operation, fd, event);
  }
  return agbox::kernel_epoll_ctl(epoll, operation, fd, event);
}

int epoll_wait(int epoll, epoll_event* events, int size, int timeout) {
  if (const auto instance = agbox::Instances::all().find(epoll)) {
    return instance->wait(events, size, timeout);
  }
  return agbox::kernel_epoll_wait(epoll, events, size, timeout);
}

}  // extern "C"
