// SPDX-License-Identifier: Apache-2.0
// Runs agbox's commands in the test's own process, with a runtime directory of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "unit/cli/captured_console.h"
#include "unit/sdk/scripted_daemon.h"

namespace agbox::cli {

class Commands : public testing::Test {
 protected:
  Commands() {
    std::filesystem::create_directory(temp_directory_.path() / "agbox");
    ::setenv("XDG_RUNTIME_DIR", temp_directory_.path().c_str(), 1);
  }
  ~Commands() override { ::unsetenv("XDG_RUNTIME_DIR"); }

  std::filesystem::path socket() const { return temp_directory_.path() / "agbox/agboxd.sock"; }

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
  // It is on its way from one to the other.
  static void moves(test::ScriptedDaemon& daemon, v1::SandboxState from, v1::EventType by,
                    v1::SandboxState to) {
    daemon.sandbox = box_in(from);
    daemon.events = {moved(by, to)};
    daemon.keep_streams_open = true;
  }
  static grpc::Status unknown(const std::string& sandbox_id) {
    return test::ErrorInfoBytes{.code = grpc::NOT_FOUND,
                                .message = "sandbox " + sandbox_id + " was not found",
                                .reason = "SANDBOX_NOT_FOUND",
                                .metadata = {{"sandbox_id", sandbox_id}}}
        .status();
  }

  // Somebody who types Ctrl-C once the command has made this call, or sends another signal.
  static std::jthread interrupt_at(test::ScriptedDaemon& daemon, std::string call,
                                   int signal = SIGINT) {
    return std::jthread([&daemon, call = std::move(call), signal] {
      EXPECT_TRUE(daemon.wait_for_call(call));
      ::kill(::getpid(), signal);
    });
  }

  test::ShortDirectory temp_directory_;
  std::string out_;
  std::string error_;
};

}  // namespace agbox::cli
