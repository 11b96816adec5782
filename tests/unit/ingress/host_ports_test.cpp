// SPDX-License-Identifier: Apache-2.0
#include "ingress/host_ports.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "support/free_port.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

// However busy the machine is.
constexpr HolderSearch kPatient{.descriptors = 100'000'000, .time = 1h};

// A socket on a free port. Not one that the kernel chooses: after the socket is closed the kernel
// might choose it for somebody else.
class OpenPort {
 public:
  OpenPort(int kind, const std::string& address)
      : kind_(kind), socket_(::socket(family(address), kind, 0)) {
    if (family(address) == AF_INET6) {
      sockaddr_in6 any{};
      any.sin6_family = AF_INET6;
      ::inet_pton(AF_INET6, address.c_str(), &any.sin6_addr);
      number_ = bind_free_port(socket_.get(), any);
    } else {
      sockaddr_in wanted{};
      wanted.sin_family = AF_INET;
      ::inet_pton(AF_INET, address.c_str(), &wanted.sin_addr);
      number_ = bind_free_port(socket_.get(), wanted);
    }
    if (kind_ == SOCK_STREAM && ::listen(socket_.get(), 1) != 0) throw std::runtime_error("listen");
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

  int kind_;
  UniqueFd socket_;
  std::uint32_t number_ = 0;
};

TEST(HostPorts, OneThatIsInUseIsFoundWithItsProcess) {
  for (const int kind : {SOCK_STREAM, SOCK_DGRAM}) {
    for (const std::string address : {"127.0.0.1", "0.0.0.0", "::"}) {
      OpenPort port(kind, address);
      const auto taken = find_taken_port(port.mapping(), kPatient);
      ASSERT_TRUE(taken.has_value()) << kind << " " << address;
      EXPECT_EQ(taken->port.host_port(), port.mapping()[0].host_port());
      EXPECT_THAT(taken->holder, testing::StartsWith("process "));
      EXPECT_THAT(taken->holder, testing::EndsWith(" (pid " + std::to_string(::getpid()) + ")"));
      port.close();
      EXPECT_FALSE(find_taken_port(port.mapping()).has_value()) << kind << " " << address;
    }
  }
}

TEST(HostPorts, TheSearchForTheProcessEnds) {
  constexpr std::size_t kBefore = 500;
  std::vector<UniqueFd> many;  // the socket's descriptor comes after these
  for (std::size_t i = 0; i < kBefore; ++i)
    many.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  OpenPort port(SOCK_STREAM, "127.0.0.1");
  const auto holder = [&](const HolderSearch& search) {
    return find_taken_port(port.mapping(), search)->holder;
  };
  const std::string user = "a process of user " + std::to_string(::geteuid());
  EXPECT_EQ(holder({.descriptors = kBefore, .time = 1h}), user);
  EXPECT_EQ(holder({.descriptors = kPatient.descriptors, .time = 0ms}), user);
  EXPECT_THAT(holder(kPatient), testing::StartsWith("process "));
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
