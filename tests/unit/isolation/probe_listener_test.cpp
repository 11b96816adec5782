// SPDX-License-Identifier: Apache-2.0
#include "isolation/probe_listener.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace agbox {
namespace {

using namespace std::chrono_literals;

constexpr const char* kHost = "127.0.0.1";
constexpr const char* kSandbox = "127.0.0.2";  // an address of the same network, not of the host

sockaddr_in place_of(const char* address, std::uint16_t port) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = ::inet_addr(address);
  place.sin_port = htons(port);
  return place;
}

UniqueFd connect_to(const ProbeListener& listener, const char* from) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here = place_of(from, 0);
  sockaddr_in there = place_of(kHost, listener.port());
  // sockaddr is the base class of the C interface.
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&here), sizeof here), 0);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&there), sizeof there), 0);
  return socket;
}

ProbeListener listener_on_loopback() {
  return ProbeListener::open(parse_ipv4_address(kHost).value(),
                             {.networks = {parse_ipv4_network("127.0.0.0/24").value()},
                              .of_this_host = {parse_ipv4_address(kHost).value()}})
      .value();
}

TEST(ProbePeers, AreThoseOfTheNetworksWithoutTheHost) {
  const ProbePeers peers{.networks = {parse_ipv4_network("10.213.0.16/28").value()},
                         .of_this_host = {parse_ipv4_address("10.213.0.17").value(),
                                          parse_ipv4_address("10.213.0.19").value()}};
  const auto contains = [&](const char* address) {
    return peers.contains(parse_ipv4_address(address).value());
  };
  EXPECT_TRUE(contains("10.213.0.16"));
  EXPECT_TRUE(contains("10.213.0.18"));
  EXPECT_TRUE(contains("10.213.0.31"));
  EXPECT_FALSE(contains("10.213.0.15"));
  EXPECT_FALSE(contains("10.213.0.32"));
  EXPECT_FALSE(contains("10.213.0.17"));
  EXPECT_FALSE(contains("10.213.0.19"));
}

TEST(ProbeListener, AnswersItsOwnConnectionAndSeesNoOther) {
  const auto seen = listener_on_loopback().check();
  EXPECT_TRUE(seen.answers);
  EXPECT_FALSE(seen.was_reached);
}

TEST(ProbeListener, AConnectionOfAPeerIsNoticedWithinTheLimit) {
  auto quickest = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    ProbeListener listener = listener_on_loopback();
    const UniqueFd silent = connect_to(listener, kSandbox);
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(listener.check(10ms).was_reached);
    quickest = std::min(quickest, std::chrono::steady_clock::now() - began);
  }
  EXPECT_LT(quickest, 900ms);
}

TEST(ProbeListener, ConnectionsOfOtherLocalProcessesChangeNothing) {
  ProbeListener listener = listener_on_loopback();
  std::vector<UniqueFd> others;
  for (int i = 0; i < 200; ++i) {
    others.push_back(connect_to(listener, kHost));
    if (i % 3 == 0) ASSERT_EQ(::send(others.back().get(), "hello", 5, MSG_NOSIGNAL), 5);
    if (i % 7 == 0) others.back() = UniqueFd();
  }
  const auto seen = listener.check(10s);
  EXPECT_TRUE(seen.answers);
  EXPECT_FALSE(seen.was_reached);
}

TEST(ProbeListener, APeerIsNoticedAmongOtherLocalProcesses) {
  ProbeListener listener = listener_on_loopback();
  std::vector<UniqueFd> others;
  for (int i = 0; i < 100; ++i) others.push_back(connect_to(listener, kHost));
  const UniqueFd peer = connect_to(listener, kSandbox);
  for (int i = 0; i < 100; ++i) others.push_back(connect_to(listener, kHost));
  EXPECT_TRUE(listener.check(10s).was_reached);
}

}  // namespace
}  // namespace agbox
