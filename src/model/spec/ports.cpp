// SPDX-License-Identifier: Apache-2.0
#include "model/spec/ports.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "model/reasons.h"
#include "model/spec/maxima.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

constexpr std::uint32_t kLastPort = 65535;

Result<> check_port_number(const std::string& name, std::uint32_t port) {
  if (port >= 1 && port <= kLastPort) return {};
  return invalid_argument("port " + name + " must be between 1 and 65535, got " +
                          std::to_string(port));
}

}  // namespace

std::string_view protocol_name(v1::PortProtocol protocol) {
  switch (protocol) {
    case v1::PORT_PROTOCOL_TCP:
      return "tcp";
    case v1::PORT_PROTOCOL_UDP:
      return "udp";
    case v1::PORT_PROTOCOL_SCTP:
      return "sctp";
    default:
      return "";  // proto3 keeps numbers that it does not know
  }
}

std::optional<v1::PortProtocol> parse_protocol(std::string_view name) {
  for (const auto protocol :
       {v1::PORT_PROTOCOL_TCP, v1::PORT_PROTOCOL_UDP, v1::PORT_PROTOCOL_SCTP}) {
    const std::string_view known = protocol_name(protocol);
    const auto is_same = [](char left, char right) {
      return std::tolower(static_cast<unsigned char>(left)) == right;
    };
    if (std::ranges::equal(name, known, is_same)) return protocol;
  }
  return std::nullopt;
}

Result<> check_ports(const v1::CreateSpec& spec) {
  AGBOX_TRY_VOID(
      at_most(static_cast<std::size_t>(spec.ports_size()), maxima::kPorts, "the number of ports"));
  std::set<std::pair<std::uint32_t, int>> published;
  for (const v1::PortMapping& port : spec.ports()) {
    AGBOX_TRY_VOID(check_port_number("container_port", port.container_port()));
    AGBOX_TRY_VOID(check_port_number("host_port", port.host_port()));
    const std::string_view protocol = protocol_name(port.protocol());
    if (protocol.empty()) {
      return invalid_argument("port protocol must be TCP, UDP, or SCTP, got " +
                              std::to_string(static_cast<int>(port.protocol())));
    }
    if (!published.emplace(port.host_port(), port.protocol()).second) {
      return invalid_argument("duplicate host_port " + std::to_string(port.host_port()) +
                              " with protocol " + std::string(protocol));
    }
  }
  return {};
}

std::string host_port_text(const v1::PortMapping& port) {
  return std::to_string(port.host_port()) + "/" + std::string(protocol_name(port.protocol()));
}

bool is_same_host_port(const v1::PortMapping& left, const v1::PortMapping& right) {
  return left.host_port() == right.host_port() && left.protocol() == right.protocol();
}

Error port_in_use(const TakenPort& taken) {
  const std::string port = host_port_text(taken.port);
  return {reason::kPortInUse,
          "host_port " + port + " on " + std::string(kPublishAddress) + " is in use by " +
              taken.holder + "; free it, or create the sandbox with another host_port",
          {{"host_port", port}, {"holder", taken.holder}}};
}

}  // namespace agbox
