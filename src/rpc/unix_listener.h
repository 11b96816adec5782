// SPDX-License-Identifier: Apache-2.0
// The daemon's Unix socket: creates it, accepts connections, and rejects all users but ours and
// root. gRPC gets connected descriptors and never sees the path, because it would unlink any socket
// there. Belongs to the control thread, and must outlive the loop.
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

  // `directory_fd` is the socket's directory, which only we can access; the caller holds the host
  // lock, so an existing socket is stale and replaced. Anything else at the path is left alone.
  static Result<std::unique_ptr<UnixListener>> open(ControlLoop& loop, int directory_fd,
                                                    const std::filesystem::path& socket,
                                                    Logger log);
  ~UnixListener();

  // Calls `on_connection` for every connection of a permitted user, until close().
  void accept(OnConnection on_connection);

  // Stops accepting and removes the socket, unless it was replaced by another one.
  void close();

 private:
  UnixListener(ControlLoop& loop, UniqueFd directory, std::filesystem::path socket, Logger log);

  Result<> bind();
  void wait();
  void accept_all();
  bool accept_one();
  void back_off(int error_number);
  bool is_permitted(int connection);

  ControlLoop& loop_;
  UniqueFd directory_;
  std::filesystem::path path_;
  Logger log_;
  asio::posix::stream_descriptor socket_;
  asio::steady_timer retry_timer_;
  OnConnection on_connection_;
  dev_t device_ = 0;  // identifies our socket in close()
  ino_t inode_ = 0;
  RareLine warnings_{std::chrono::seconds(1)};
};

}  // namespace agbox
