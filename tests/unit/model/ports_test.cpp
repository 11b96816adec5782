// SPDX-License-Identifier: Apache-2.0
#include "model/spec/ports.h"

#include <gtest/gtest.h>

#include "model/reasons.h"

namespace agbox {
namespace {

v1::PortMapping mapping(std::uint32_t host_port, v1::PortProtocol protocol) {
  v1::PortMapping port;
  port.set_host_port(host_port);
  port.set_container_port(1);
  port.set_protocol(protocol);
  return port;
}

TEST(Ports, ProtocolsHaveNamesInAnyCase) {
  EXPECT_EQ(parse_protocol("tcp"), v1::PORT_PROTOCOL_TCP);
  EXPECT_EQ(parse_protocol("UDP"), v1::PORT_PROTOCOL_UDP);
  EXPECT_EQ(parse_protocol("Sctp"), v1::PORT_PROTOCOL_SCTP);
  for (const char* other : {"", "tc", "tcp ", "icmp"}) EXPECT_FALSE(parse_protocol(other)) << other;
}

TEST(Ports, ThoseOfTwoProtocolsAreDifferent) {
  const auto tcp = mapping(80, v1::PORT_PROTOCOL_TCP);
  v1::PortMapping elsewhere = tcp;
  elsewhere.set_container_port(2);
  EXPECT_TRUE(is_same_host_port(tcp, elsewhere));
  EXPECT_FALSE(is_same_host_port(tcp, mapping(80, v1::PORT_PROTOCOL_UDP)));
  EXPECT_FALSE(is_same_host_port(tcp, mapping(81, v1::PORT_PROTOCOL_TCP)));
}

TEST(Ports, ATakenOneIsNamedWithItsHolderAndTheRemedy) {
  const Error error =
      port_in_use({.port = mapping(8080, v1::PORT_PROTOCOL_UDP), .holder = "sandbox s1"});
  EXPECT_EQ(error.reason(), reason::kPortInUse);
  EXPECT_EQ(
      error.message(),
      "host_port 8080/udp on 127.0.0.1 is in use by sandbox s1; free it, or create the sandbox "
      "with another host_port");
  EXPECT_EQ(error.metadata(),
            (Error::Metadata{{"host_port", "8080/udp"}, {"holder", "sandbox s1"}}));
}

}  // namespace
}  // namespace agbox
