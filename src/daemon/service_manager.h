// SPDX-License-Identifier: Apache-2.0
// Tells systemd (or whoever set NOTIFY_SOCKET) how far we are. The protocol is one datagram and
// promised to stay, so it is written here: libsystemd has no static archive in Debian and would
// load four compression and crypto libraries into every daemon.
#pragma once

#include <string>
#include <string_view>

#include "base/log.h"
#include "paths/fixed_paths.h"

namespace agbox {

class ServiceManager {
 public:
  // Without NOTIFY_SOCKET every message is dropped.
  ServiceManager(const Environment& environment, Logger log);

  // Lines such as "READY=1\nSTATUS=...". A failure is logged: nothing else depends on it.
  void notify(std::string_view state) const;

 private:
  std::string socket_;
  Logger log_;
};

}  // namespace agbox
