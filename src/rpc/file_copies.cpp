// SPDX-License-Identifier: Apache-2.0
#include "rpc/file_copies.h"

namespace agbox {

FileCopies::FileCopies(ControlLoop& control, std::chrono::milliseconds stall_limit)
    : control_(control),
      stall_limit_(stall_limit),
      io_(1),
      keep_running_(boost::asio::make_work_guard(io_)),
      thread_([this] { io_.run(); }) {}

FileCopies::~FileCopies() {
  io_.stop();
  thread_.join();
}

void FileCopyHandle::begin(BeginFileCopy begin, std::string sandbox_id, FileOrder order,
                           OnFilePipe on_open, OnFilesReport on_report) {
  control_.post([self = shared_from_this(), begin = std::move(begin),
                 sandbox_id = std::move(sandbox_id), order = std::move(order),
                 on_open = std::move(on_open), on_report = std::move(on_report)] {
    if (self->is_cancelled_) return;
    self->task_ = begin(sandbox_id, order, on_open, on_report);
  });
}

void FileCopyHandle::cancel() {
  control_.post([self = shared_from_this()] {
    self->is_cancelled_ = true;
    if (self->task_) self->task_->cancel();
  });
}

}  // namespace agbox
