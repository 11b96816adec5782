// SPDX-License-Identifier: Apache-2.0
// Removes what this instance has left in the engine and on the disk and no sandbox claims: what an
// engine created although its answer was lost, what a crash left between two steps, what someone
// restored. Each removal is logged with its reason.
//
// It runs when the engine's event stream begins, after the start and after every gap, when the
// engine creates something that no sandbox claims, and again after a pause if one of its calls
// failed. A create in progress claims its own objects, so the two never conflict.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "async/retry_timer.h"
#include "control/actor_services.h"
#include "control/sandbox/operations/operation.h"
#include "engine/engine.h"

namespace agbox {

class Janitor {
 public:
  Janitor(ActorServices& services, const SandboxClaims& claims);
  Janitor(const Janitor&) = delete;

  // Starts a sweep, or another after the one in progress, which may have inspected too early.
  void sweep();
  bool is_sweeping() const { return is_sweeping_; }
  // Completed sweeps.
  unsigned sweeps() const { return sweeps_; }

 private:
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<OperationResult<>> sweep_once();
  boost::asio::awaitable<OperationResult<>> sweep_guest_directories();
  boost::asio::awaitable<OperationResult<>> sweep_exec_logs();
  // Whether the sweep can continue after this removal: a refused one affects no other.
  OperationResult<> allow(const OperationResult<>& removed) const;

  ActorServices& services_;
  const SandboxClaims& claims_;
  Logger log_;
  bool is_sweeping_ = false;
  bool sweeps_again_ = false;
  unsigned sweeps_ = 0;
  RetryTimer retry_timer_;
};

}  // namespace agbox
