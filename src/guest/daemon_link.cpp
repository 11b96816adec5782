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

// Behind inotify, whose instances can run out, and whose events a strange filesystem may not send.
constexpr milliseconds kSlowPoll{2000};
constexpr milliseconds kPollWithoutInotify{250};
constexpr milliseconds kFirstPause{20};

std::string path_of(int folder) {
  return "/proc/self/fd/" + std::to_string(folder);
}

// The daemon is outside of this container's processes, which the kernel shows as pid 0. Whatever
// has a pid here is an impostor.
bool listener_is_outside(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == 0;
}

}  // namespace

Result<DaemonLink> DaemonLink::open(const char* folder, Talk talk) {
  UniqueFd fd(::open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    return std::unexpected(errno_error(std::string("opening the link folder ") + folder, errno));
  }
  return DaemonLink(std::move(fd), status.st_uid, status.st_gid, std::move(talk));
}

DaemonLink::DaemonLink(UniqueFd folder, uid_t owner, gid_t group, Talk talk)
    : folder_(std::move(folder)),
      owner_(owner),
      group_(group),
      talk_(std::move(talk)),
      next_try_(steady_clock::now()) {}

void DaemonLink::collect(Watches& watches) {
  if (!socket_ && steady_clock::now() >= next_try_) seek();
  if (socket_) {
    watches.add(socket_.get(), POLLIN, [this] { read_some(); });
    if (!unsent_.empty()) watches.add(socket_.get(), POLLOUT, [this] { write_some(); });
    return;
  }
  watches.wake(next_try_);
  if (inotify_) watches.add(inotify_.get(), POLLIN, [this] { seek(); });
}

void DaemonLink::seek() {
  if (socket_) return;
  if (inotify_) {
    std::array<char, 4096> events;
    while (::read(inotify_.get(), events.data(), events.size()) > 0) {
    }
  } else {
    watch_folder();  // before the try: a socket that appears in between is seen by one of the two
  }
  socket_ = connect();
  if (!socket_) {
    next_try_ = steady_clock::now() + (inotify_ ? kSlowPoll : kPollWithoutInotify);
    return;
  }
  inotify_.reset();
  reader_ = guestwire::FrameReader(guestwire::kMaxFrame);
  unsent_.clear();
  ++refusals_;
  v1::ToDaemon opening;
  *opening.mutable_hello() = talk_.hello();
  send(opening);
}

UniqueFd DaemonLink::connect() const {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return {};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = path_of(folder_.get()) + "/" + guestwire::kSocketName;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const FileAccessAs owner(owner_, group_);
  // sockaddr is the C interface's base class.
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return {};
  }
  if (!listener_is_outside(fd.get())) return {};
  return fd;
}

void DaemonLink::watch_folder() {
  UniqueFd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd) return;
  const FileAccessAs owner(owner_, group_);
  if (::inotify_add_watch(fd.get(), path_of(folder_.get()).c_str(), IN_CREATE | IN_MOVED_TO) >= 0) {
    inotify_ = std::move(fd);
  }
}

void DaemonLink::send(const v1::ToDaemon& message) {
  if (!socket_) return;
  unsent_ += guestwire::frame(message);
  write_some();
}

void DaemonLink::write_some() {
  while (socket_ && !unsent_.empty()) {
    const ssize_t sent = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) return lost();
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
  unsent_ = {};
}

void DaemonLink::read_some() {
  if (!socket_) return;
  std::array<char, 8192> chunk;
  const ssize_t got = ::recv(socket_.get(), chunk.data(), chunk.size(), 0);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) return lost();
  reader_.feed({chunk.data(), static_cast<std::size_t>(got)});
  while (socket_) {
    const auto bytes = reader_.next();
    if (!bytes) break;
    v1::ToGuest message;
    if (!message.ParseFromString(*bytes) || !talk_.on_message(message)) return lost();
  }
  if (reader_.broken()) lost();
}

void DaemonLink::lost() {
  socket_.reset();
  unsent_ = {};
  // A daemon that turns us away again and again is not asked a thousand times a second.
  const int doublings = std::min(refusals_, 7);
  next_try_ =
      steady_clock::now() + (refusals_ == 0 ? milliseconds(0) : kFirstPause * (1 << doublings));
}

}  // namespace agbox::guest
