// SPDX-License-Identifier: Apache-2.0
#include "guest/daemon_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "guest/privilege.h"
#include "guestwire/place.h"

namespace agbox::guest {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Fallback for inotify, whose instances can run out and which some filesystems do not support.
constexpr milliseconds kSlowPoll{2000};
constexpr milliseconds kPollWithoutInotify{250};
constexpr milliseconds kFirstRetryDelay{20};
constexpr int kMostDoublingsInACrowd = 3;

std::string path_of(int directory) {
  return "/proc/self/fd/" + std::to_string(directory);
}

// The daemon is outside of this container's PID namespace, which the kernel shows as pid 0. A peer
// with a pid is an impostor.
bool listener_is_outside(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == 0;
}

}  // namespace

Result<DaemonLink> DaemonLink::open(const char* directory, Handlers handlers) {
  UniqueFd fd(::open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    return std::unexpected(
        errno_error(std::string("opening the link directory ") + directory, errno));
  }
  return DaemonLink(std::move(fd), status.st_uid, status.st_gid, std::move(handlers));
}

DaemonLink::DaemonLink(UniqueFd directory, uid_t owner, gid_t group, Handlers handlers)
    : directory_(std::move(directory)),
      owner_(owner),
      group_(group),
      handlers_(std::move(handlers)),
      next_try_(steady_clock::now()) {}

void DaemonLink::collect(Watches& watches) {
  if (socket_ && socket_->is_broken()) on_lost();
  if (!socket_ && steady_clock::now() >= next_try_) try_connect();
  if (socket_) {
    watches.add(socket_->fd(), POLLIN, [this] { socket_->read_some(handlers_.on_message); });
    if (socket_->has_unsent()) {
      watches.add(socket_->fd(), POLLOUT, [this] { socket_->write_some(); });
    }
    return;
  }
  watches.wake(next_try_);
  if (inotify_) watches.add(inotify_.get(), POLLIN, [this] { try_connect(); });
}

void DaemonLink::try_connect() {
  if (socket_) return;
  if (inotify_) {
    std::array<char, 4096> events;
    while (::read(inotify_.get(), events.data(), events.size()) > 0) {
    }
  }
  auto connected = connect();
  if (!connected && !inotify_) {
    watch_directory();
    connected = connect();  // the socket may have appeared in between
  }
  if (!connected) {
    next_try_ = steady_clock::now() + delay_after(connected.error());
    return;
  }
  full_queues_ = 0;
  socket_.emplace(std::move(*connected));
  ++refusals_;
  v1::ToDaemon opening;
  *opening.mutable_hello() = handlers_.hello();
  send(opening);
}

milliseconds DaemonLink::delay_after(int problem) {
  // Others crowd the socket, and nothing reports when the daemon has accepted or closed theirs.
  if (problem == EAGAIN) {
    return kFirstRetryDelay * (1 << std::min(full_queues_++, kMostDoublingsInACrowd));
  }
  full_queues_ = 0;
  return inotify_ ? kSlowPoll : kPollWithoutInotify;
}

std::expected<UniqueFd, int> DaemonLink::connect() const {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return std::unexpected(errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = path_of(directory_.get()) + "/" + guestwire::kSocketName;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const FileAccessAs owner(owner_, group_);
  // sockaddr is the base class of the C interface.
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return std::unexpected(errno);
  }
  if (!listener_is_outside(fd.get())) return std::unexpected(EPERM);
  return fd;
}

void DaemonLink::watch_directory() {
  UniqueFd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd) return;
  const FileAccessAs owner(owner_, group_);
  if (::inotify_add_watch(fd.get(), path_of(directory_.get()).c_str(), IN_CREATE | IN_MOVED_TO) >=
      0) {
    inotify_ = std::move(fd);
  }
}

void DaemonLink::send(const v1::ToDaemon& message) {
  if (socket_) socket_->send(message);
}

std::optional<MessageSocket::DescriptorPair> DaemonLink::take_descriptors() {
  return socket_ ? socket_->take_descriptors() : std::nullopt;
}

// The handshake is over: closing the watch takes the kernel 10 to 50 ms.
void DaemonLink::accepted() {
  refusals_ = 0;
  inotify_.reset();
}

void DaemonLink::on_lost() {
  socket_.reset();
  inotify_.reset();
  // Backs off if the daemon keeps refusing us.
  const int doublings = std::min(refusals_, 7);
  next_try_ = steady_clock::now() +
              (refusals_ == 0 ? milliseconds(0) : kFirstRetryDelay * (1 << doublings));
}

}  // namespace agbox::guest
