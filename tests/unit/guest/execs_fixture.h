// SPDX-License-Identifier: Apache-2.0
// Plays the guest: execs with real runners and commands, their files in a temporary directory, and
// messages to the daemon in a list. Switching users requires root.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "guest/execs.h"
#include "unit/temp_directory.h"

namespace agbox::guest {

class ExecsTest : public testing::Test {
 protected:
  using Clock = std::chrono::steady_clock;

  void SetUp() override;
  void TearDown() override;

  // The command, or `sh -c script`, as a dedicated user.
  ExecOrder order_of(std::vector<std::string> command);
  ExecOrder shell(const std::string& script) { return order_of({"/bin/sh", "-c", script}); }
  void start(const std::string& id, ExecOrder order);
  v1::ExecEnded run(const std::string& id, ExecOrder order);

  void round(std::chrono::milliseconds limit);
  // Runs the loop until it holds; fails on a timeout.
  void until(const std::function<bool()>& holds);
  const v1::ExecEnded* end_of(const std::string& id) const;
  v1::ExecEnded wait_end(const std::string& id);
  void until_all_is_gone() {
    until([this] { return !execs_->any_runs(); });
  }

  std::string out(const std::string& id) const { return read(id + ".out"); }
  std::string err(const std::string& id) const { return read(id + ".err"); }
  std::string read(const std::string& name) const;
  bool exists(const std::string& name) const;
  std::filesystem::path directory() const { return temp_directory_.path(); }

  // Processes of the commands' user.
  static std::vector<pid_t> alive();
  static std::vector<pid_t> alive(const std::string& name);
  // Our children that are runners.
  static std::vector<pid_t> runners();

  // Per process: other tests run concurrently.
  static uid_t uid();
  Identity user_{.uid = uid(), .gid = uid(), .gids = {}, .home = "/tmp"};
  std::function<void()> in_runner_ = [] {};
  std::function<bool(const Process&)> is_foreign_ = [](const Process&) { return false; };
  std::vector<v1::ToDaemon> reported_;
  std::unique_ptr<Execs> execs_;

 private:
  void reap();

  TempDirectory temp_directory_;
  UniqueFd null_;
  UniqueFd signals_;
};

}  // namespace agbox::guest
