// SPDX-License-Identifier: Apache-2.0
// Opens the daemon's store with everything that it needs from the daemon.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "control/control_loop.h"
#include "paths/fixed_paths.h"

namespace agbox {

// The part of the store that the daemon's shell uses. Its destructor flushes and closes.
class Store {
 public:
  explicit Store(std::string instance_id) : instance_id_(std::move(instance_id)) {}
  const std::string& instance_id() const { return instance_id_; }

 private:
  std::string instance_id_;
};

Result<std::unique_ptr<Store>> open_store(const FixedPaths& paths, ControlLoop& loop,
                                          const Clock& clock, const Logger& log);

}  // namespace agbox
