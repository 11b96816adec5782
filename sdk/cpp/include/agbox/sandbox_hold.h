// SPDX-License-Identifier: Apache-2.0
// Holds a sandbox that was created with lease_ttl, from a thread of its own, until it is destroyed.
// If this program ends in any other way, the daemon deletes the sandbox lease_ttl later. After a
// lost connection it reconnects for as long as it exists.
//
//   create.mutable_create_spec()->mutable_lease_ttl()->set_seconds(10);
//   auto created = client.create_sandbox(create);
//   const SandboxHold hold(client, created->sandbox().sandbox_id());
//   if (auto held = hold.wait_until_held(); !held) return report(held.error());
#pragma once

#include <agbox/raw_client.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace agbox::sdk {

class SandboxHold {
 public:
  // The client must outlive the hold.
  SandboxHold(const RawClient& client, std::string sandbox_id);
  // Releases the sandbox.
  ~SandboxHold() = default;
  SandboxHold(const SandboxHold&) = delete;
  SandboxHold& operator=(const SandboxHold&) = delete;

  // Returns once the daemon has confirmed the hold for the first time. Fails if the daemon refused
  // it, if the sandbox was deleted before, or on a stop request, which does not end the hold.
  Result<void> wait_until_held(const std::stop_token& stop = {}) const;

 private:
  void run(const std::stop_token& stop);
  void report(Result<void> outcome);

  const RawClient& client_;
  std::string sandbox_id_;
  mutable std::mutex mutex_;
  mutable std::condition_variable_any is_known_;
  std::optional<Result<void>> first_outcome_;
  std::jthread thread_;  // last: it uses the members above
};

}  // namespace agbox::sdk
