// SPDX-License-Identifier: Apache-2.0
#include "async/worker_thread.h"

namespace agbox {

WorkerThread::WorkerThread()
    : io_(1),
      opens_at_once_(io_),
      keep_running_(boost::asio::make_work_guard(io_)),
      thread_([this] { io_.run(); }) {}

WorkerThread::~WorkerThread() {
  io_.stop();
  thread_.join();
}

}  // namespace agbox
