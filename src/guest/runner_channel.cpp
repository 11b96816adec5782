// SPDX-License-Identifier: Apache-2.0
#include "guest/runner_channel.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/send_descriptors.h"

namespace agbox::guest {
namespace {

// Of unread orders, with what the kernel adds to each. Far below the size of the socket's buffer.
constexpr int kMaxUnread = 64 << 10;

// An order without its descriptor.
struct OrderPacket {
  RunnerOrder::Kind kind;
  std::uint64_t number;
  TerminalSize size;
};

void send(int channel, std::string_view packet) {
  const ssize_t sent = ::send(channel, packet.data(), packet.size(), MSG_NOSIGNAL);
  // Otherwise the peer is gone, which each side detects on its own.
  AGBOX_CHECK(sent >= 0 || errno == EPIPE || errno == ECONNRESET, "send to or from a runner");
}

bool is_crowded(int channel) {
  int unread = 0;
  return ::ioctl(channel, SIOCOUTQ, &unread) == 0 && unread > kMaxUnread;
}

// At most one descriptor comes with a packet.
Received receive(int channel, std::span<char> buffer, std::string_view& packet, UniqueFd& with) {
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control;
  ssize_t got = 0;
  msghdr message{};
  do {
    message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    got = ::recvmsg(channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    // ECONNRESET comes once, before the peer's packets, if it ended with a packet of ours unread.
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0 && errno == EAGAIN) return Received::NothingYet;
  if (got <= 0) return Received::Closed;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    with.reset(descriptor);
  }
  packet = {buffer.data(), static_cast<std::size_t>(got)};
  return Received::Packet;
}

}  // namespace

Result<std::pair<UniqueFd, UniqueFd>> make_runner_channel() {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return std::unexpected(errno_error("cannot create a channel to a runner", errno));
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

void send_report(int channel, const RunnerReport& report) {
  std::string packet(1, static_cast<char>(report.kind));
  const bool is_input = report.kind == RunnerReport::Kind::InputAttached;
  const google::protobuf::MessageLite& content =
      is_input ? static_cast<const google::protobuf::MessageLite&>(report.input) : report.end;
  AGBOX_CHECK(content.AppendToString(&packet), "a runner's report");
  send(channel, packet);
}

int send_order(int channel, const RunnerOrder& order) {
  OrderPacket packet;
  std::memset(&packet, 0, sizeof packet);  // padding too
  packet.kind = order.kind;
  packet.number = order.number;
  packet.size = order.size;
  std::array<char, sizeof packet> bytes;
  std::memcpy(bytes.data(), &packet, sizeof packet);
  const std::string_view text(bytes.data(), bytes.size());
  if (order.kind == RunnerOrder::Kind::Cancel) {
    send(channel, text);
    return 0;
  }
  if (is_crowded(channel)) return EAGAIN;
  const std::array descriptors{order.pipe.get()};
  const auto with = std::span<const int>(descriptors).first(order.pipe ? 1U : 0U);
  return send_with_descriptors(channel, text, with) < 0 ? errno : 0;
}

Received receive_report(int channel, RunnerReport& report) {
  std::array<char, 4096> buffer;
  std::string_view packet;
  UniqueFd none;
  const Received received = receive(channel, buffer, packet, none);
  if (received != Received::Packet) return received;
  report.kind = static_cast<RunnerReport::Kind>(packet[0]);
  packet.remove_prefix(1);
  const int size = static_cast<int>(packet.size());
  const bool is_input = report.kind == RunnerReport::Kind::InputAttached;
  AGBOX_CHECK(is_input ? report.input.ParseFromArray(packet.data(), size)
                       : report.end.ParseFromArray(packet.data(), size),
              "a runner's report");
  return received;
}

Received receive_order(int channel, RunnerOrder& order) {
  std::array<char, sizeof(OrderPacket)> buffer;
  std::string_view text;
  UniqueFd pipe;
  const Received received = receive(channel, buffer, text, pipe);
  if (received != Received::Packet) return received;
  AGBOX_CHECK(text.size() == sizeof(OrderPacket), "an order to a runner");
  OrderPacket packet;
  std::memcpy(&packet, text.data(), sizeof packet);
  order = {
      .kind = packet.kind, .number = packet.number, .size = packet.size, .pipe = std::move(pipe)};
  return received;
}

}  // namespace agbox::guest
