// SPDX-License-Identifier: Apache-2.0
#include "control/output_loop.h"

namespace agbox {

OutputLoop::OutputLoop()
    : io_(1),
      keep_running_(boost::asio::make_work_guard(io_)),
      watch_(LogWatch::make(io_.get_executor())),
      thread_([this] { io_.run(); }) {}

OutputLoop::~OutputLoop() {
  io_.stop();
  thread_.join();
}

}  // namespace agbox
