// SPDX-License-Identifier: Apache-2.0
// A command that was started in a sandbox: its output as it comes, its input or terminal, and its
// end. All of it continues across restarts of the daemon: no byte is lost or comes twice.
//
//   auto process = box.start({.args = {"make", "test"}});
//   if (!process) return complain(process.error());
//   for (const auto& chunk : *process) {
//     if (!chunk) return complain(chunk.error());
//     std::fwrite(chunk->bytes.data(), 1, chunk->bytes.size(), stdout);
//   }
//   auto result = process->wait();
//
// The command is cancelled by the destructor, unless it has ended or was detached.
#pragma once

#include <agbox/command.h>
#include <agbox/export.h>
#include <agbox/sequence.h>
#include <agbox/wait_limits.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace agbox::sdk {

class ClientCore;

enum class OutputStream { Unspecified = 0, Stdout = 1, Stderr = 2 };

struct OutputChunk {
  OutputStream stream = OutputStream::Unspecified;
  std::uint64_t offset = 0;  // of the first byte, in that stream
  std::string bytes = {};
};

class AGBOX_API Process {
 public:
  using Iterator = SequenceIterator<Process, OutputChunk>;

  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;
  ~Process();

  // Of the exec. Client::attach() finds it again, also from another program.
  const std::string& id() const;

  // Blocks until the next piece of output; nullopt when the command has ended. Some output that was
  // not read is kept here, and the rest by the daemon: a slow reader does not slow the command.
  Result<std::optional<OutputChunk>> next(const WaitLimits& limits = {});
  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

  // Blocks until the command has ended, and returns how. Output that was not read by then is not
  // returned any more.
  Result<CommandResult> wait(const WaitLimits& limits = {});

  // To its stdin or terminal. Blocks while the command is slow to read: write from another thread
  // than the one that reads the output, as with two pipes. ErrorKind::ExecNotRunning if it takes no
  // input, or no more.
  Result<void> write(std::string_view bytes, const std::stop_token& stop = {});
  // After what was written: end of file for a command, Ctrl-D for a terminal.
  void end_input();
  // Of its terminal.
  void resize(std::uint32_t rows, std::uint32_t columns);
  // To the foreground process group of the terminal, or the process group of the command.
  void send_signal(int number);

  // Ends all processes of the command, and returns when they are gone.
  Result<CommandResult> cancel(const WaitLimits& limits = {});
  // Leaves it running when this object is destroyed.
  void detach();

 private:
  friend class Client;
  friend class Sandbox;
  class AGBOX_INTERNAL Session;
  explicit Process(std::unique_ptr<Session> session);

  std::unique_ptr<Session> session_;
};

}  // namespace agbox::sdk
