// SPDX-License-Identifier: Apache-2.0
// A sandbox that a command creates for itself and deletes when it is done with it. Reports every
// failure on stderr.
#pragma once

#include <agbox/raw_client.h>
#include <agbox/sandbox_hold.h>

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "cli/console.h"
#include "cli/interrupt.h"

namespace agbox::cli {

class OwnSandbox {
 public:
  struct Options {
    bool starts_daemon = true;  // if it is not running
    // The daemon deletes the sandbox if this program is killed. It cannot be kept then.
    bool has_lease = false;
    int failure_code = 1;  // the exit code if agbox fails
    // Called when a step has just ended: daemon, create, ready, delete.
    std::function<void(const char* step)> on_step = {};
  };

  OwnSandbox(Console& console, const sdk::RawClient& client, const Clock& clock,
             const Interrupt& interrupt, Options options);

  // An exit code if it failed. Chooses an ID if the request has none: if the response is lost, the
  // sandbox can still be deleted.
  std::optional<int> create(v1::CreateSandboxRequest request);
  // An exit code if it failed, or was interrupted.
  std::optional<int> wait_until_ready();
  // The daemon records the request and completes it by itself, so nothing waits for its end. False
  // if it was not accepted.
  bool request_deletion();

  const std::string& id() const { return id_; }
  // As it was when it was accepted.
  const v1::SandboxHandle& accepted() const { return accepted_; }
  // Whether it is ours to delete.
  bool exists() const { return exists_; }

 private:
  std::optional<int> wait_until_held();
  void end_step(const char* step) const;

  Console& console_;
  const sdk::RawClient& client_;
  const Clock& clock_;
  const Interrupt& interrupt_;
  Options options_;
  std::string id_;
  v1::SandboxHandle accepted_;
  bool exists_ = false;
  bool has_lease_ = false;  // the daemon deletes it if this client is gone
  std::optional<sdk::SandboxHold> hold_;
};

}  // namespace agbox::cli
