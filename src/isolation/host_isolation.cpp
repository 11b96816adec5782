// SPDX-License-Identifier: Apache-2.0
#include "isolation/host_isolation.h"

namespace agbox {

boost::asio::awaitable<Result<>> Unisolated::prove(std::string) {
  co_return Result<>{};
}

std::string Unisolated::shortcoming() const {
  return "sandboxes can reach this host and the local network: the firewall is not part of this "
         "version";
}

}  // namespace agbox
