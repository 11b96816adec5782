// SPDX-License-Identifier: Apache-2.0
#include "isolation/netlink/netlink_socket.h"

#include <gtest/gtest.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

namespace agbox {
namespace {

struct LinkQuestion {
  nlmsghdr header;
  ifinfomsg link;
};

LinkQuestion ask_for_loopback(std::uint32_t sequence) {
  return {.header = {.nlmsg_len = sizeof(LinkQuestion),
                     .nlmsg_type = RTM_GETLINK,
                     .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
                     .nlmsg_seq = sequence,
                     .nlmsg_pid = 0},
          .link = {.ifi_family = AF_UNSPEC,
                   .__ifi_pad = 0,
                   .ifi_type = 0,
                   .ifi_index = 1,
                   .ifi_flags = 0,
                   .ifi_change = 0}};
}

std::span<const char> bytes_of(std::span<const LinkQuestion> questions) {
  // Netlink messages are consecutive structs.
  return {reinterpret_cast<const char*>(questions.data()), questions.size_bytes()};
}

void set_receive_buffer(const NetlinkSocket& socket, int size) {
  ASSERT_EQ(::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVBUF, &size, sizeof size), 0);
}

TEST(NetlinkSocket, PendingAnswersAfterAnOverrunAreDropped) {
  auto socket = NetlinkSocket::open(NETLINK_ROUTE);
  ASSERT_TRUE(socket.has_value());
  std::vector<LinkQuestion> many;
  for (std::uint32_t sequence = 1; sequence <= 64; ++sequence) {
    many.push_back(ask_for_loopback(sequence));
  }
  set_receive_buffer(*socket, 1);  // the kernel's minimum
  const auto overrun = socket->ask(bytes_of(many), [](const nlmsghdr*) {});
  ASSERT_FALSE(overrun.has_value());
  ASSERT_EQ(overrun.error().number, ENOBUFS);

  set_receive_buffer(*socket, 1 << 16);
  std::vector<std::uint32_t> answered;
  const LinkQuestion next = ask_for_loopback(100);
  const auto asked = socket->ask(
      bytes_of({&next, 1}), [&](const nlmsghdr* answer) { answered.push_back(answer->nlmsg_seq); });
  ASSERT_TRUE(asked.has_value()) << asked.error().text();
  EXPECT_EQ(answered, std::vector<std::uint32_t>{100});
}

}  // namespace
}  // namespace agbox
