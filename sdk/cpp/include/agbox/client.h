// SPDX-License-Identifier: Apache-2.0
// A connection to the daemon of this user. Thread-safe, and cheap to copy.
#pragma once

#include <agbox/client_error.h>
#include <agbox/event.h>
#include <agbox/export.h>
#include <agbox/process.h>
#include <agbox/sandbox.h>
#include <agbox/sandbox_info.h>
#include <agbox/sandbox_spec.h>
#include <agbox/sequence.h>
#include <agbox/wait_limits.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace agbox::sdk {

struct ConnectOptions {
  // Empty: that of this user's daemon, below XDG_RUNTIME_DIR.
  std::filesystem::path socket = {};
  // Of each call with one response. Waits consist of such calls and of streams.
  std::chrono::milliseconds call_timeout{5000};
  // How often in a row a wait reconnects to a daemon that it has lost. The pause doubles up to one
  // second, so that 30 attempts take half a minute: longer than a restart.
  int reconnect_attempts = 30;
};

struct DaemonInfo {
  std::string version = {};
  std::string instance_id = {};
  std::string engine = {};  // "Docker 28.5.2 (API 1.51)"; empty if it is unreachable
  std::vector<std::string> features = {};
  // What is wrong with the isolation, for people. Empty if it is in place.
  std::string isolation_shortcoming = {};
};

struct ListOptions {
  bool include_deleted = false;
  // Every label must match. Empty: all sandboxes.
  std::map<std::string, std::string> labels = {};
};

struct AttachOptions {
  // Take the input from the program that writes now. Otherwise only output is read.
  bool takes_input = false;
  // Where the output begins.
  std::uint64_t stdout_offset = 0;
  std::uint64_t stderr_offset = 0;
};

class AGBOX_API Client {
 public:
  // Does not connect yet: the first call does, and later calls reconnect after a restart of the
  // daemon.
  static Result<Client> open(const ConnectOptions& options = {});

  Result<DaemonInfo> ping() const;

  // Returns when the sandbox is ready. If that fails, or is ended by the limits, it is deleted.
  Result<Sandbox> create(const SandboxSpec& spec, const WaitLimits& limits = {}) const;
  // One that exists, kept by its destructor. Makes no call.
  Sandbox sandbox(std::string id) const;
  // Also of a deleted sandbox, until its history is purged.
  Result<SandboxInfo> info(const std::string& sandbox_id) const;
  // The newest first.
  Result<std::vector<SandboxInfo>> list(const ListOptions& options = {}) const;
  // Deletes all sandboxes with these labels, of which there must be one, and returns their IDs when
  // they are gone.
  Result<std::vector<std::string>> remove_all(const std::map<std::string, std::string>& labels,
                                              const WaitLimits& limits = {}) const;

  // A command that was started before, which the destructor does not cancel. Errors such as an
  // unknown ID are returned by its methods.
  Process attach(std::string exec_id, const AttachOptions& options = {}) const;
  Result<ExecInfo> exec_info(const std::string& exec_id) const;

  // Of all sandboxes, also of those that are created later, in the order in which they were
  // recorded. It does not end by itself.
  Sequence<EventMessage> events(const AllEventsOptions& options = {}) const;

 private:
  explicit Client(std::shared_ptr<const ClientCore> core);

  std::shared_ptr<const ClientCore> core_;  // shared with all that use its connection
};

}  // namespace agbox::sdk
