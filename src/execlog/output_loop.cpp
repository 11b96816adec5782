// SPDX-License-Identifier: Apache-2.0
#include "execlog/output_loop.h"

#include <string>

namespace agbox {

OutputLoop::OutputLoop(std::size_t most_readers)
    : most_readers_(most_readers),
      io_(1),
      keep_running_(boost::asio::make_work_guard(io_)),
      watch_(LogWatch::make(io_.get_executor())),
      thread_([this] { io_.run(); }) {}

OutputLoop::~OutputLoop() {
  io_.stop();
  thread_.join();
}

Result<OutputLoop::Place> OutputLoop::take_place() {
  if (readers_ >= most_readers_) {
    return fail(reason::kResourceExhausted,
                "readers of output of all execs: at most " + std::to_string(most_readers_) +
                    " are possible; wait until some of them end, or follow fewer execs");
  }
  ++readers_;
  return Place(&readers_);
}

}  // namespace agbox
