// SPDX-License-Identifier: Apache-2.0
#include "ingress/host_ports.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

#include "base/unique_fd.h"

namespace agbox {
namespace {

// A socket on a port that the kernel chose.
class OpenPort {
 public:
  OpenPort(int kind, const std::string& address)
      : kind_(kind), socket_(::socket(family(address), kind, 0)) {
    if (family(address) == AF_INET6) {
      sockaddr_in6 any{};
      any.sin6_family = AF_INET6;
      ::inet_pton(AF_INET6, address.c_str(), &any.sin6_addr);
      open(any);
      number_ = ntohs(any.sin6_port);
    } else {
      sockaddr_in wanted{};
      wanted.sin_family = AF_INET;
      ::inet_pton(AF_INET, address.c_str(), &wanted.sin_addr);
      open(wanted);
      number_ = ntohs(wanted.sin_port);
    }
  }
  PortMappings mapping() const {
    PortMappings ports;
    v1::PortMapping& port = *ports.Add();
    port.set_host_port(number_);
    port.set_container_port(80);
    port.set_protocol(kind_ == SOCK_STREAM ? v1::PORT_PROTOCOL_TCP : v1::PORT_PROTOCOL_UDP);
    return ports;
  }
  void close() { socket_ = {}; }

 private:
  static int family(const std::string& address) {
    return address.contains(':') ? AF_INET6 : AF_INET;
  }
  template <class Address>
  void open(Address& address) {
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);  // as the API of sockets has it
    const bool is_open = ::bind(socket_.get(), generic, size) == 0 &&
                         (kind_ != SOCK_STREAM || ::listen(socket_.get(), 1) == 0) &&
                         ::getsockname(socket_.get(), generic, &size) == 0;
    if (!is_open) throw std::runtime_error("no port");
  }

  int kind_;
  UniqueFd socket_;
  std::uint32_t number_ = 0;
};

TEST(HostPorts, OneThatIsInUseIsFoundWithItsProcess) {
  for (const int kind : {SOCK_STREAM, SOCK_DGRAM}) {
    for (const std::string address : {"127.0.0.1", "0.0.0.0", "::"}) {
      OpenPort port(kind, address);
      const auto taken = find_taken_port(port.mapping());
      ASSERT_TRUE(taken.has_value()) << kind << " " << address;
      EXPECT_EQ(taken->port.host_port(), port.mapping()[0].host_port());
      EXPECT_THAT(taken->holder, testing::StartsWith("process "));
      EXPECT_THAT(taken->holder, testing::EndsWith(" (pid " + std::to_string(::getpid()) + ")"));
      port.close();
      EXPECT_FALSE(find_taken_port(port.mapping()).has_value()) << kind << " " << address;
    }
  }
}

TEST(HostPorts, OtherAddressesAndProtocolsAreInNobodysWay) {
  OpenPort elsewhere(SOCK_STREAM, "127.0.0.2");
  EXPECT_FALSE(find_taken_port(elsewhere.mapping()).has_value());
  OpenPort udp(SOCK_DGRAM, "127.0.0.1");
  PortMappings sctp = udp.mapping();
  sctp[0].set_protocol(v1::PORT_PROTOCOL_SCTP);
  EXPECT_FALSE(find_taken_port(sctp).has_value()) << "only the engine can tell";
}

TEST(HostPorts, TheFirstThatIsTakenIsReported) {
  OpenPort free(SOCK_STREAM, "127.0.0.1");
  OpenPort first(SOCK_STREAM, "127.0.0.1");
  OpenPort second(SOCK_DGRAM, "127.0.0.1");
  free.close();
  PortMappings ports = free.mapping();
  ports.Add()->CopyFrom(first.mapping()[0]);
  ports.Add()->CopyFrom(second.mapping()[0]);
  EXPECT_EQ(find_taken_port(ports)->port.host_port(), first.mapping()[0].host_port());
  EXPECT_FALSE(find_taken_port({}).has_value());
}

}  // namespace
}  // namespace agbox
