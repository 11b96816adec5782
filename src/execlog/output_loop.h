// SPDX-License-Identifier: Apache-2.0
// The output thread: all reads of exec logs happen on it, so that neither a slow disk nor a busy
// log delays a decision or another call. Other threads reach it only through post().
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
  // Drops posted work that has not begun: its waiters must have ended before.
  ~OutputLoop();
  OutputLoop(const OutputLoop&) = delete;
  OutputLoop& operator=(const OutputLoop&) = delete;

  // From any thread: runs `work` on the output thread, after everything posted before it.
  template <class Work>
  void post(Work&& work) {
    boost::asio::post(io_, std::forward<Work>(work));
  }

  // On the output thread, like what follows.
  LogWatch& watch() { return *watch_; }

  // A slot for one reader, freed on destruction.
  struct GiveBack {
    void operator()(std::size_t* readers) const { --*readers; }
  };
  using Place = std::unique_ptr<std::size_t, GiveBack>;
  // RESOURCE_EXHAUSTED if none is free: each reader costs a chunk of memory and a descriptor.
  Result<Place> take_place();

 private:
  const std::size_t most_readers_;
  std::size_t readers_ = 0;  // before io_: work dropped with io_ still frees its slots
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_running_;
  std::shared_ptr<LogWatch> watch_;  // its waits hold it weakly and may outlive their reader
  std::thread thread_;               // reads block; the control thread must not
};

}  // namespace agbox
