// SPDX-License-Identifier: Apache-2.0
#include "guest/enter_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>

#include "guest/process_tree.h"
#include "guestwire/frame.h"

namespace agbox::guest {
namespace {

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;
};

Address enter_address() {
  constexpr std::string_view kName = "agbox-guest-enter";
  Address address;
  address.name.sun_family = AF_UNIX;
  kName.copy(address.name.sun_path + 1, kName.size());  // a leading NUL makes it abstract
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + kName.size());
  return address;
}

// sockaddr is the base class of the C interface.
const sockaddr* generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.name);
}

pid_t peer_pid(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

}  // namespace

Result<> EnterSocket::open() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const Address address = enter_address();
  if (!fd || ::bind(fd.get(), generic(address), address.size) != 0 || ::listen(fd.get(), 8) != 0) {
    return std::unexpected(errno_error("opening the entrypoint's socket", errno));
  }
  listener_ = std::move(fd);
  return {};
}

void EnterSocket::collect(Watches& watches, pid_t entrypoint, const v1::EnterReply& reply,
                          std::function<void(Entered)> admit) {
  if (!listener_) return;
  watches.add(listener_.get(), POLLIN, [this, entrypoint, &reply, admit = std::move(admit)] {
    if (auto entered = answer(entrypoint, reply)) admit(std::move(*entered));
  });
}

std::optional<Entered> EnterSocket::answer(pid_t entrypoint, const v1::EnterReply& reply) {
  if (!listener_) return std::nullopt;
  const UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!client) return std::nullopt;
  Entered entered;
  entered.pid = peer_pid(client.get());
  entered.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, entered.pid, 0)));
  if (!entered.pidfd || !descends(entered.pid, entrypoint)) return std::nullopt;
  // A few dozen bytes into an empty socket: they fit, or the client is gone.
  const std::string bytes = guestwire::frame(reply);
  if (::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(bytes.size())) {
    return std::nullopt;
  }
  listener_.reset();
  return entered;
}

Result<v1::EnterReply> request_enter() {
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Address address = enter_address();
  if (!fd || ::connect(fd.get(), generic(address), address.size) != 0) {
    return std::unexpected(
        errno_error("no guest is waiting for this container's entrypoint", errno));
  }
  if (peer_pid(fd.get()) != 1) {
    return fail(reason::kInvalidArgument, "the entrypoint's socket does not belong to the guest");
  }
  guestwire::FrameReader reader(guestwire::kMaxUnprovenFrame);
  while (!reader.broken()) {
    if (const auto bytes = reader.next()) {
      v1::EnterReply reply;
      if (reply.ParseFromString(*bytes)) return reply;
      break;
    }
    std::array<char, 1024> chunk;
    const ssize_t got = ::recv(fd.get(), chunk.data(), chunk.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    reader.feed({chunk.data(), static_cast<std::size_t>(got)});
  }
  return fail(reason::kInvalidArgument,
              "the guest accepts this only from its entrypoint, and only once");
}

}  // namespace agbox::guest
