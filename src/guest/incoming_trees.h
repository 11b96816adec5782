// SPDX-License-Identifier: Apache-2.0
// The trees that the daemon is sending, each received by a process of its own. Each is reported
// once, when its process has ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "agbox/guest/v1/link.pb.h"
#include "base/unique_fd.h"
#include "guest/account_files.h"

namespace agbox::guest {

class IncomingTrees {
 public:
  using Report = std::function<void(const v1::TreeReceived&)>;

  explicit IncomingTrees(Report report) : report_(std::move(report)) {}

  void begin(const v1::ReceiveTree& order, UniqueFd stream, const Identity& user, int null);
  // For any child of this process.
  void on_exit(pid_t pid, int status);
  // Ends all without a report: the daemon that sent them is gone.
  void cancel_all();

 private:
  struct Receiver {
    std::uint64_t id = 0;
    UniqueFd report;  // a pipe that it writes to when it is done
  };
  void fail(std::uint64_t id, std::string why);

  Report report_;
  std::map<pid_t, Receiver> receivers_;
};

}  // namespace agbox::guest
