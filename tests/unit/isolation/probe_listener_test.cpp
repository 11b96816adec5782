// SPDX-License-Identifier: Apache-2.0
#include "isolation/probe_listener.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>

namespace agbox {
namespace {

using namespace std::chrono_literals;

UniqueFd connect_to(const ProbeListener& listener) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(listener.address().value);
  place.sin_port = htons(listener.port());
  // sockaddr is the base class of the C interface.
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
  return socket;
}

ProbeListener listener_on_loopback() {
  return ProbeListener::open(parse_ipv4_address("127.0.0.1").value()).value();
}

TEST(ProbeListener, AnswersItsOwnConnectionAndSeesNoOther) {
  const auto seen = listener_on_loopback().check();
  EXPECT_TRUE(seen.answers);
  EXPECT_FALSE(seen.was_reached);
}

TEST(ProbeListener, AnotherConnectionIsNoticedWithinTheLimit) {
  auto quickest = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 5; ++i) {
    ProbeListener listener = listener_on_loopback();
    const UniqueFd silent = connect_to(listener);
    const auto began = std::chrono::steady_clock::now();
    EXPECT_TRUE(listener.check(10ms).was_reached);
    quickest = std::min(quickest, std::chrono::steady_clock::now() - began);
  }
  EXPECT_LT(quickest, 900ms);
}

}  // namespace
}  // namespace agbox
