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
  // Else the other side is gone, which each of them learns in its own way.
  AGBOX_CHECK(sent >= 0 || errno == EPIPE || errno == ECONNRESET, "a word to or from a runner");
}

Heard receive(int channel, std::span<char> buffer, std::string_view& packet) {
  ssize_t got = 0;
  do {
    got = ::recv(channel, buffer.data(), buffer.size(), MSG_DONTWAIT);
    // ECONNRESET comes once, and before what the other side has said: it ended and had a word of
    // ours still to read.
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0 && errno == EAGAIN) return Heard::NothingYet;
  if (got <= 0) return Heard::NothingMore;
  packet = {buffer.data(), static_cast<std::size_t>(got)};
  return Heard::Something;
}

}  // namespace

Result<std::pair<UniqueFd, UniqueFd>> make_runner_channel() {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return std::unexpected(errno_error("cannot make a channel to a runner", errno));
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

Heard receive_report(int channel, RunnerReport& report) {
  std::array<char, 4096> buffer;
  std::string_view packet;
  const Heard heard = receive(channel, buffer, packet);
  if (heard != Heard::Something) return heard;
  report.kind = static_cast<RunnerReport::Kind>(packet[0]);
  packet.remove_prefix(1);
  AGBOX_CHECK(report.end.ParseFromArray(packet.data(), static_cast<int>(packet.size())),
              "a runner's report");
  return heard;
}

Heard receive_cancel(int channel) {
  std::array<char, kCancel.size()> buffer;
  std::string_view packet;
  return receive(channel, buffer, packet);
}

}  // namespace agbox::guest
