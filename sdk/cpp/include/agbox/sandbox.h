// SPDX-License-Identifier: Apache-2.0
// A sandbox. One that Client::create() returned is deleted by its destructor, unless it is kept.
// Thread-safe, except for hold(), keep(), moving and destroying it.
#pragma once

#include <agbox/command.h>
#include <agbox/event.h>
#include <agbox/export.h>
#include <agbox/file_copy_options.h>
#include <agbox/process.h>
#include <agbox/sandbox_info.h>
#include <agbox/sequence.h>
#include <agbox/wait_limits.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace agbox::sdk {

class SandboxHold;

struct LogOptions {
  // The name of a service. Empty: the sandbox itself, whose log is what its main process printed.
  std::string container = {};
  // Also what is printed from now on, until the container is removed.
  bool follow = false;
  // Only what was printed then or later.
  std::optional<Time> since = {};
  // Only so many lines before the current end.
  std::optional<std::uint64_t> tail = {};
  // Ends the sequence with ErrorKind::Cancelled.
  std::stop_token stop = {};
};

// Lines of the log of a container.
struct LogPiece {
  OutputStream stream = OutputStream::Unspecified;
  std::string bytes = {};
  std::optional<Time> time = {};  // when the last line was printed
};

class AGBOX_API Sandbox {
 public:
  Sandbox(Sandbox&&) noexcept;
  Sandbox& operator=(Sandbox&&) noexcept;
  // Requests the deletion and does not wait for its end. remove() does, and reports errors.
  ~Sandbox();

  const std::string& id() const { return id_; }
  // Leaves it when this object is destroyed; one with a lease is deleted some time later unless
  // another one holds it. Client::sandbox() finds it again.
  void keep() { is_kept_ = true; }
  // Holds a sandbox with a lease until this object is destroyed, also across restarts of the
  // daemon, and returns when that is confirmed. Client::create() has done it.
  Result<void> hold(const std::stop_token& stop = {});
  Result<SandboxInfo> info() const;

  // These return once it has the state.
  Result<void> stop(const WaitLimits& limits = {}) const;
  Result<void> resume(const WaitLimits& limits = {}) const;
  // A sandbox that does not exist counts as removed.
  Result<void> remove(const WaitLimits& limits = {});
  // Ready, Stopped or Deleted, at once if it has it now. ErrorKind::SandboxFailed if it cannot
  // reach it any more.
  Result<void> wait_for(SandboxState state, const WaitLimits& limits = {}) const;

  // Runs a command and returns how it ended, with its output. Any exit code is a result, not an
  // error. A stop request or timeout also cancels the command.
  Result<CommandResult> run(const Command& command, const WaitLimits& limits = {}) const;
  Result<CommandResult> run(const std::vector<std::string>& args,
                            const WaitLimits& limits = {}) const;
  // Starts a command and returns while it runs.
  Result<Process> start(const Command& command, const std::stop_token& stop = {}) const;
  Result<Process> start(const std::vector<std::string>& args,
                        const std::stop_token& stop = {}) const;
  // Its commands, in the order of their start.
  Result<std::vector<ExecInfo>> execs() const;

  // Copies a file or directory with the rules of `docker cp`: docs/mount_and_copy_strategy.md.
  Result<FileCopyResult> copy_in(const std::filesystem::path& source, const std::string& target,
                                 const FileCopyOptions& options = {}) const;
  // What comes out is untrusted. It is written below the target only, through no symbolic link, and
  // up to limits. Links are created as they are: do not follow them blindly.
  Result<FileCopyResult> copy_out(const std::string& source, const std::filesystem::path& target,
                                  const FileCopyOptions& options = {}) const;
  // A file that exists is replaced.
  Result<void> write_file(const std::string& path, std::string_view bytes,
                          const std::stop_token& stop = {}) const;
  Result<std::string> read_file(const std::string& path,
                                std::uint64_t max_bytes = std::uint64_t{64} << 20,
                                const std::stop_token& stop = {}) const;

  // In order and each once, also across restarts of the daemon. It does not end by itself.
  Sequence<Event> events(const EventOptions& options = {}) const;
  Sequence<LogPiece> logs(const LogOptions& options = {}) const;
  Result<SandboxStats> stats() const;

 private:
  friend class Client;
  Sandbox(std::shared_ptr<const ClientCore> client, std::string id, bool is_kept);
  void end();

  std::shared_ptr<const ClientCore> client_;  // shared with all that use its connection
  std::string id_;
  bool is_kept_;
  std::unique_ptr<SandboxHold> hold_;  // uses the client
};

}  // namespace agbox::sdk
