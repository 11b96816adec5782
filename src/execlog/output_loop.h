// SPDX-License-Identifier: Apache-2.0
// The output thread: everything that touches the logs of execs for readers happens on it, so that
// neither a slow disk nor a busy log delays a decision or another call. Other threads reach it with
// post() alone.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>

#include "base/result.h"
#include "execlog/log_watch.h"
#include "model/spec/maxima.h"

namespace agbox {

class OutputLoop {
 public:
  explicit OutputLoop(std::size_t most_readers = maxima::kOutputReaders);
  // What was posted and has not begun is dropped: whoever waits for it ends first.
  ~OutputLoop();
  OutputLoop(const OutputLoop&) = delete;
  OutputLoop& operator=(const OutputLoop&) = delete;

  // From any thread: runs `work` on the output thread, after everything posted before it.
  template <class Work>
  void post(Work&& work) {
    boost::asio::post(io_, std::forward<Work>(work));
  }

  // Of the output thread, like what follows.
  LogWatch& watch() { return *watch_; }

  // One reader's place among all; it is free again when this goes.
  struct GiveBack {
    void operator()(std::size_t* readers) const { --*readers; }
  };
  using Place = std::unique_ptr<std::size_t, GiveBack>;
  // RESOURCE_EXHAUSTED where none is free: each reader costs a chunk of memory and a descriptor.
  Result<Place> take_place();

 private:
  const std::size_t most_readers_;
  std::size_t readers_ = 0;  // before io_: what is dropped with that still gives places back
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_running_;
  std::shared_ptr<LogWatch> watch_;  // its waits know it weakly, and may be left behind by a reader
  std::thread thread_;               // reads block; the control thread must not
};

}  // namespace agbox
