// SPDX-License-Identifier: Apache-2.0
#include "guest/runner_channel.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"

namespace agbox::guest {
namespace {

constexpr std::string_view kCancel = "c";

void send(int channel, std::string_view packet) {
  const ssize_t sent = ::send(channel, packet.data(), packet.size(), MSG_NOSIGNAL);
  // Otherwise the peer is gone, which each side detects on its own.
  AGBOX_CHECK(sent >= 0 || errno == EPIPE || errno == ECONNRESET, "send to or from a runner");
}

Received receive(int channel, std::span<char> buffer, std::string_view& packet) {
  ssize_t got = 0;
  do {
    got = ::recv(channel, buffer.data(), buffer.size(), MSG_DONTWAIT);
    // ECONNRESET comes once, before the peer's packets, if it ended with a packet of ours unread.
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0 && errno == EAGAIN) return Received::NothingYet;
  if (got <= 0) return Received::Closed;
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
  AGBOX_CHECK(report.end.AppendToString(&packet), "a runner's report");
  send(channel, packet);
}

void send_cancel(int channel) {
  send(channel, kCancel);
}

Received receive_report(int channel, RunnerReport& report) {
  std::array<char, 4096> buffer;
  std::string_view packet;
  const Received received = receive(channel, buffer, packet);
  if (received != Received::Packet) return received;
  report.kind = static_cast<RunnerReport::Kind>(packet[0]);
  packet.remove_prefix(1);
  AGBOX_CHECK(report.end.ParseFromArray(packet.data(), static_cast<int>(packet.size())),
              "a runner's report");
  return received;
}

Received receive_cancel(int channel) {
  std::array<char, kCancel.size()> buffer;
  std::string_view packet;
  return receive(channel, buffer, packet);
}

}  // namespace agbox::guest
