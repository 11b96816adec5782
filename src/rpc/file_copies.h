// SPDX-License-Identifier: Apache-2.0
// The thread that moves bytes between clients and the pipes of sandboxes, for CopyIn and CopyOut.
// Pipes and calls never block it: one chunk per call is on its way, and the next one follows when
// the other side has taken it. So a client or a sandbox that stalls costs one chunk and delays no
// other.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "async/task_group.h"
#include "base/result.h"
#include "control/control_loop.h"
#include "model/guest/file_order.h"
#include "rpc/open_streams.h"

namespace agbox {

// One copy of Directory::transfer_files(), seen from the thread of the copies.
using OnFilePipe = std::function<void(FilePipe)>;
using OnFilesReport = std::function<void(Result<FilesReport>)>;
// Called on the control thread, like both callbacks.
using BeginFileCopy = std::function<Task(const std::string& sandbox_id, FileOrder order,
                                         OnFilePipe on_open, OnFilesReport on_report)>;

class FileCopies {
 public:
  // `stall_limit`: how long a sandbox may move no byte of a copy. Any process of its user can stop
  // the one that copies.
  explicit FileCopies(ControlLoop& control,
                      std::chrono::milliseconds stall_limit = std::chrono::minutes(2));
  // Drops posted work that has not begun: the calls must have ended before.
  ~FileCopies();
  FileCopies(const FileCopies&) = delete;
  FileCopies& operator=(const FileCopies&) = delete;

  // From any thread: runs `work` on this thread, after everything posted before it.
  template <class Work>
  void post(Work&& work) {
    boost::asio::post(io_, std::forward<Work>(work));
  }
  boost::asio::io_context& io() { return io_; }
  ControlLoop& control() { return control_; }
  // On this thread. Its streams may end after their service.
  const std::shared_ptr<OpenStreams>& streams() { return streams_; }
  std::chrono::milliseconds stall_limit() const { return stall_limit_; }

  // How long the guest may take to report once nothing more comes or goes through the pipe: a slow
  // disk has to take what the pipe holds.
  static constexpr std::chrono::seconds kReportLimit{60};

 private:
  ControlLoop& control_;
  const std::chrono::milliseconds stall_limit_;
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> keep_running_;
  std::shared_ptr<OpenStreams> streams_ = std::make_shared<OpenStreams>();
  std::thread thread_;  // moves bytes, which the control thread must not wait for
};

// A copy that was begun, to cancel it from any thread. It may be cancelled before it has begun.
class FileCopyHandle : public std::enable_shared_from_this<FileCopyHandle> {
 public:
  explicit FileCopyHandle(ControlLoop& control) : control_(control) {}

  void begin(BeginFileCopy begin, std::string sandbox_id, FileOrder order, OnFilePipe on_open,
             OnFilesReport on_report);
  void cancel();

 private:
  ControlLoop& control_;
  // On the control thread.
  std::optional<Task> task_;
  bool is_cancelled_ = false;
};

}  // namespace agbox
