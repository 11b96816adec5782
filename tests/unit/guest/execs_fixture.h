// SPDX-License-Identifier: Apache-2.0
// A test that plays the guest: execs with real runners and commands, their files in a folder of the
// test, and what would be told to the daemon in a list. Becoming a user takes root.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "guest/execs.h"
#include "unit/temp_folder.h"

namespace agbox::guest {

class ExecsTest : public testing::Test {
 protected:
  using Clock = std::chrono::steady_clock;

  void SetUp() override;
  void TearDown() override;

  // The command as it is, or `sh -c script`, as a user whom nobody else is.
  ExecOrder order_of(std::vector<std::string> command);
  ExecOrder shell(const std::string& script) { return order_of({"/bin/sh", "-c", script}); }
  void start(const std::string& id, ExecOrder order);
  v1::ExecEnded run(const std::string& id, ExecOrder order);

  void round(std::chrono::milliseconds limit);
  // Rounds until it holds; the test fails where that takes too long.
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
  std::filesystem::path folder() const { return folder_.path(); }

  // Processes of the commands' user.
  static std::vector<pid_t> alive();
  static std::vector<pid_t> alive(const std::string& name);
  // Our children that are runners.
  static std::vector<pid_t> runners();

  // Of this process alone: other tests run at the same time.
  static uid_t uid();
  Identity user_{.uid = uid(), .gid = uid(), .gids = {}, .home = "/tmp"};
  std::function<void()> in_runner_ = [] {};
  std::function<bool(const Process&)> is_foreign_ = [](const Process&) { return false; };
  std::vector<v1::ToDaemon> told_;
  std::unique_ptr<Execs> execs_;

 private:
  void reap();

  TempFolder folder_;
  UniqueFd null_;
  UniqueFd signals_;
};

}  // namespace agbox::guest
