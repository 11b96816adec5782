// SPDX-License-Identifier: Apache-2.0
// What keeps a sandbox away from the host, the local network and other sandboxes.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "base/result.h"

namespace agbox {

class HostIsolation {
 public:
  virtual ~HostIsolation() = default;

  // Says whether, for this sandbox and now, the isolation holds. Nothing of a caller runs before.
  virtual boost::asio::awaitable<Result<>> prove(std::string bridge_name) = 0;

  // One sentence for people where something is missing; empty where all of it is in place.
  virtual std::string shortcoming() const = 0;
};

// No isolation beyond the engine's own, and it says so.
class Unisolated final : public HostIsolation {
 public:
  boost::asio::awaitable<Result<>> prove(std::string bridge_name) override;
  std::string shortcoming() const override;
};

}  // namespace agbox
