// SPDX-License-Identifier: Apache-2.0
// The daemon's Unix socket: makes it, accepts on it, and lets only our own user and root through.
// gRPC gets connected descriptors and never sees the path, because it would unlink a socket there
// without asking whose it is. Belongs to the control thread, and lives until the loop has stopped.
#pragma once

#include <sys/types.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

#include "base/log.h"
#include "base/rare_line.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "control/control_loop.h"

namespace agbox {

class UnixListener {
 public:
  using OnConnection = std::function<void(UniqueFd)>;

  // `folder_fd` is the socket's folder, ours alone; the caller holds the host lock, so that a
  // socket found at the path is nobody's and is replaced. Anything else there is left as it is.
  static Result<std::unique_ptr<UnixListener>> open(ControlLoop& loop, int folder_fd,
                                                    const std::filesystem::path& socket,
                                                    Logger log);
  ~UnixListener();

  // Calls `on_connection` with every connection of a permitted user, until close().
  void accept(OnConnection on_connection);

  // Stops accepting and removes the socket, unless another one has taken its place.
  void close();

 private:
  UnixListener(ControlLoop& loop, UniqueFd folder, std::filesystem::path socket, Logger log);

  Result<> bind();
  void wait();
  void accept_all();
  bool accept_one();
  void back_off(int error_number);
  bool is_permitted(int connection);

  ControlLoop& loop_;
  UniqueFd folder_;
  std::filesystem::path path_;
  Logger log_;
  asio::posix::stream_descriptor socket_;
  asio::steady_timer pause_;
  OnConnection on_connection_;
  dev_t device_ = 0;  // which file our socket is, to know it again in close()
  ino_t inode_ = 0;
  RareLine warnings_{std::chrono::seconds(1)};
};

}  // namespace agbox
