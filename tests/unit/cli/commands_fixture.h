// SPDX-License-Identifier: Apache-2.0
// Runs agbox's commands in the test's own process, with a runtime folder of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "unit/cli/captured_console.h"
#include "unit/sdk/scripted_daemon.h"

namespace agbox::cli {

class Commands : public testing::Test {
 protected:
  Commands() {
    std::filesystem::create_directory(folder_.path() / "agbox");
    ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
  }
  ~Commands() override { ::unsetenv("XDG_RUNTIME_DIR"); }

  std::filesystem::path socket() const { return folder_.path() / "agbox/agboxd.sock"; }

  int run(std::vector<std::string> arguments) {
    CapturedConsole captured;
    CommandLine line(all_commands());
    const int code = line.run(std::move(arguments), captured.console());
    out_ = captured.out();
    error_ = captured.error();
    return code;
  }

  // The sandbox box-1 after four events, and the fifth.
  static v1::SandboxHandle box_in(v1::SandboxState state) {
    v1::SandboxHandle sandbox;
    sandbox.set_sandbox_id("box-1");
    sandbox.set_state(state);
    sandbox.set_last_event_sequence(4);
    return sandbox;
  }
  static v1::SandboxEvent moved(v1::EventType type, v1::SandboxState state) {
    v1::SandboxEvent event;
    event.set_sequence(5);
    event.set_event_type(type);
    event.set_sandbox_state(state);
    return event;
  }

  test::ShortFolder folder_;
  std::string out_;
  std::string error_;
};

}  // namespace agbox::cli
