// SPDX-License-Identifier: Apache-2.0
// The copies into and out of the running container, each made by a process of its own. Each is
// reported once, when its process has ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agbox/guest/v1/link.pb.h"
#include "base/unique_fd.h"
#include "guest/account_files.h"

namespace agbox::guest {

class FileTransfers {
 public:
  using Report = std::function<void(const v1::FilesDone&)>;

  explicit FileTransfers(Report report) : report_(std::move(report)) {}

  // `user` is the runtime user.
  void put(const v1::PutFiles& order, UniqueFd stream, const Identity& user, int null);
  void get(const v1::GetFiles& order, UniqueFd stream, const Identity& user, int null);
  void cancel(std::uint64_t id);
  // For any child of this process.
  void on_exit(pid_t pid, int status);
  // Ends all without a report: the daemon that ordered them is gone.
  void cancel_all();

 private:
  struct Transfer {
    std::uint64_t id = 0;
    UniqueFd report;  // a pipe that it writes to when it is done
  };
  struct Program {
    std::vector<std::string> arguments;
    int in;
    int out;
    bool as_root;
  };
  void start(std::uint64_t id, Program program, const Identity& user);
  void fail(std::uint64_t id, std::string why);

  Report report_;
  std::map<pid_t, Transfer> transfers_;
};

}  // namespace agbox::guest
