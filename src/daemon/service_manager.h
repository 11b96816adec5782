// SPDX-License-Identifier: Apache-2.0
// Reports our state to systemd (or whatever set NOTIFY_SOCKET). The protocol is one datagram and
// stable, so it is implemented here: Debian has no static libsystemd, and the shared one loads four
// compression and crypto libraries.
#pragma once

#include <string>
#include <string_view>

#include "base/log.h"
#include "paths/fixed_paths.h"

namespace agbox {

class ServiceManager {
 public:
  // Without NOTIFY_SOCKET messages are dropped.
  ServiceManager(const Environment& environment, Logger log);

  // Lines such as "READY=1
  // STATUS=...". Failures are only logged.
  void notify(std::string_view state) const;

 private:
  std::string socket_;
  Logger log_;
};

}  // namespace agbox
