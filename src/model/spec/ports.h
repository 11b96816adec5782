// SPDX-License-Identifier: Apache-2.0
// The ports that a sandbox publishes on the host's 127.0.0.1.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agbox/v1/spec.pb.h"
#include "base/result.h"

namespace agbox {

using PortMappings = google::protobuf::RepeatedPtrField<v1::PortMapping>;

// The only address of the host that ports are published on.
inline constexpr std::string_view kPublishAddress = "127.0.0.1";

// tcp, udp, sctp; empty for any other number.
std::string_view protocol_name(v1::PortProtocol protocol);

// In any case; nullopt if it is none of them.
std::optional<v1::PortProtocol> parse_protocol(std::string_view name);

Result<> check_ports(const v1::CreateSpec& spec);

// A port of the host, as engines name it: 8080/tcp.
std::string host_port_text(const v1::PortMapping& port);
// Whether both are the same port of the host.
bool is_same_host_port(const v1::PortMapping& left, const v1::PortMapping& right);

// A port that cannot be published.
struct TakenPort {
  v1::PortMapping port;
  std::string holder;  // for people: "sandbox s1", "process nginx (pid 12)"
};
// PORT_IN_USE, with the port and its holder.
Error port_in_use(const TakenPort& taken);

}  // namespace agbox
