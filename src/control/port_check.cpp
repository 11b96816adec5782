// SPDX-License-Identifier: Apache-2.0
#include "control/port_check.h"

#include <utility>

namespace agbox {

asio::awaitable<Result<>> check_host_ports(Engine& engine, Place& place, PortMappings ports) {
  if (ports.empty()) co_return Result<>{};
  AGBOX_CO_TRY(taken, co_await place.find_taken_port(std::move(ports)));
  if (!taken) co_return Result<>{};
  // The process of a published port is the engine's own, whose name helps no one.
  auto publisher = co_await engine.publisher_of(taken->port);
  if (publisher && *publisher) taken->holder = std::move(**publisher);
  co_return std::unexpected(port_in_use(*taken));
}

}  // namespace agbox
