// SPDX-License-Identifier: Apache-2.0
// The ports that a sandbox publishes on the host's 127.0.0.1.
#pragma once

#include <string_view>

#include "agbox/v1/spec.pb.h"
#include "base/result.h"

namespace agbox {

// tcp, udp, sctp; empty for any other number.
std::string_view protocol_name(v1::PortProtocol protocol);

Result<> check_ports(const v1::CreateSpec& spec);

}  // namespace agbox
