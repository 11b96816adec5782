// SPDX-License-Identifier: Apache-2.0
// Notifies readers at the end of a log when it grows, with one inotify instance for all of them. A
// watch exists only while a reader waits, is shared by all readers of one file, and fires once; a
// log without waiting readers costs its writer nothing.
//
// The kernel counts instances and watches per user, and sandboxes may have used them up: a reader
// that gets no watch is woken by a timer instead, and tries again.
//
// Belongs to the thread that runs its executor.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace agbox {

class LogWatch {
 public:
  // One wait for the next change of one file. Destroying it ends the wait.
  class Wait {
   public:
    Wait(Wait&& other) noexcept : watch_(std::move(other.watch_)), key_(other.key_) {}
    Wait& operator=(Wait&&) = delete;
    ~Wait();

   private:
    friend class LogWatch;
    struct Key {
      int descriptor;
      std::uint64_t number;
    };
    Wait(std::weak_ptr<LogWatch> watch, Key key) : watch_(std::move(watch)), key_(key) {}
    std::weak_ptr<LogWatch> watch_;
    Key key_;
  };

  // Shared with the waits, which may outlive it.
  static std::shared_ptr<LogWatch> make(const boost::asio::any_io_executor& executor);

  // Calls `on_change` once, after the file of `fd` was written to, truncated, linked or removed, or
  // for no reason. Does not report changes before this call: the caller checks for them afterwards.
  Wait wait(int fd, std::function<void()> on_change);

  boost::asio::any_io_executor executor() { return inotify_.get_executor(); }
  std::size_t watched_files() const { return waiters_.size(); }

 private:
  explicit LogWatch(const boost::asio::any_io_executor& executor)
      : inotify_(executor), timer_(executor) {}
  void open();
  int watch(int fd);
  void start_timer();
  void listen();
  void take_events();
  void fire(int descriptor);
  void fire_all();
  std::function<void()> take_waiter(int descriptor, std::uint64_t last);
  void forget(const Wait::Key& key);

  std::weak_ptr<LogWatch> self_;
  boost::asio::posix::stream_descriptor inotify_;
  boost::asio::steady_timer timer_;
  std::uint64_t last_number_ = 0;
  // By watch descriptor, which the kernel numbers consecutively; a file gets a new one each time
  // that its watch has fired. kNoWatch has those that wait for the timer.
  std::map<int, std::map<std::uint64_t, std::function<void()>>> waiters_;
};

}  // namespace agbox
