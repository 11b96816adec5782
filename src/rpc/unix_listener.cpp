// SPDX-License-Identifier: Apache-2.0
#include "rpc/unix_listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace agbox {
namespace {

// sun_path without its terminating NUL.
constexpr std::size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path) - 1;
// While the process is out of descriptors, the pending connection stays readable: without a pause
// the loop would spin.
constexpr std::chrono::milliseconds kAcceptRetryDelay{50};
// Bounds one iteration of the loop.
constexpr int kMaxAcceptsPerIteration = 64;

std::string errno_text() {
  return std::generic_category().message(errno);
}

}  // namespace

UnixListener::UnixListener(ControlLoop& loop, UniqueFd directory, std::filesystem::path socket,
                           Logger log)
    : loop_(loop),
      directory_(std::move(directory)),
      path_(std::move(socket)),
      log_(std::move(log)),
      socket_(loop.io()),
      retry_timer_(loop.io()) {}

UnixListener::~UnixListener() {
  close();
}

Result<std::unique_ptr<UnixListener>> UnixListener::open(ControlLoop& loop, int directory_fd,
                                                         const std::filesystem::path& socket,
                                                         Logger log) {
  AGBOX_ON_CONTROL_THREAD(loop);
  UniqueFd directory(::fcntl(directory_fd, F_DUPFD_CLOEXEC, 0));
  if (!directory) return std::unexpected(errno_error("listen on " + socket.string(), errno));
  std::unique_ptr<UnixListener> listener(
      new UnixListener(loop, std::move(directory), socket, std::move(log)));
  if (auto bound = listener->bind(); !bound) {
    return std::unexpected(bound.error().within("listen on " + socket.string()));
  }
  return listener;
}

Result<> UnixListener::bind() {
  const std::string path = path_.string();
  const std::string name = path_.filename().string();
  if (path.size() > kMaxPathBytes) {
    return fail(reason::kHostNotReady, "the path has " + std::to_string(path.size()) +
                                           " bytes, but a Unix socket's path is limited to " +
                                           std::to_string(kMaxPathBytes) +
                                           "; set XDG_RUNTIME_DIR to a shorter path");
  }
  struct stat found{};
  if (::fstatat(directory_.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!S_ISSOCK(found.st_mode)) {
      return fail(reason::kHostNotReady,
                  "something that is not a socket is there and was left as it is; move it away");
    }
    if (::unlinkat(directory_.get(), name.c_str(), 0) != 0) {
      return fail(reason::kHostNotReady, "remove the socket of an earlier daemon: " + errno_text());
    }
  } else if (errno != ENOENT) {
    return fail(reason::kHostNotReady, errno_text());
  }

  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail(reason::kHostNotReady, "create a socket: " + errno_text());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  // reinterpret_cast: required by the socket API.
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return fail(reason::kHostNotReady, "bind: " + errno_text());
  }
  if (::fstatat(directory_.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
    return fail(reason::kHostNotReady, "inspect the new socket: " + errno_text());
  }
  device_ = found.st_dev;
  inode_ = found.st_ino;
  // Nothing can connect before listen(), so the permissions are never wider; umask would affect all
  // threads.
  if (::fchmodat(directory_.get(), name.c_str(), 0600, 0) != 0) {
    return fail(reason::kHostNotReady, "set its mode to 0600: " + errno_text());
  }
  if (::listen(fd.get(), SOMAXCONN) != 0)
    return fail(reason::kHostNotReady, "listen: " + errno_text());
  socket_.assign(fd.release());
  return {};
}

void UnixListener::accept(OnConnection on_connection) {
  AGBOX_ON_CONTROL_THREAD(loop_);
  on_connection_ = std::move(on_connection);
  wait();
}

void UnixListener::wait() {
  socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [this](const boost::system::error_code& error) {
                       if (!error) accept_all();  // the only error is cancellation by close()
                     });
}

void UnixListener::accept_all() {
  if (!socket_.is_open()) return;  // closed after this was queued
  for (int accepted = 0; accepted < kMaxAcceptsPerIteration; ++accepted) {
    if (!accept_one()) return;
  }
  wait();
}

// False if the next iteration is already scheduled.
bool UnixListener::accept_one() {
  UniqueFd connection(
      ::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection) {
    if (is_permitted(connection.get())) on_connection_(std::move(connection));
    return true;
  }
  if (errno == EINTR || errno == ECONNABORTED) return true;
  if (errno == EAGAIN) {
    wait();
  } else {
    back_off(errno);
  }
  return false;
}

void UnixListener::back_off(int error_number) {
  if (const auto left_out = warnings_.is_due()) {
    log_.warn(
        "cannot accept a connection, retrying",
        {{"error", std::generic_category().message(error_number)}, {"lines_left_out", *left_out}});
  }
  retry_timer_.expires_after(kAcceptRetryDelay);
  retry_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) wait();
  });
}

bool UnixListener::is_permitted(int connection) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    const std::string problem = errno_text();
    if (const auto left_out = warnings_.is_due()) {
      log_.warn("refused a connection: peer credentials unavailable",
                {{"error", problem}, {"lines_left_out", *left_out}});
    }
    return false;
  }
  if (peer.uid == ::geteuid() || peer.uid == 0) return true;
  if (const auto left_out = warnings_.is_due()) {
    log_.warn("refused a connection of another user",
              {{"uid", peer.uid}, {"pid", peer.pid}, {"lines_left_out", *left_out}});
  }
  return false;
}

void UnixListener::close() {
  AGBOX_ON_CONTROL_THREAD(loop_);
  if (!socket_.is_open()) return;
  const std::string name = path_.filename().string();
  struct stat found{};
  if (::fstatat(directory_.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
      found.st_dev == device_ && found.st_ino == inode_) {
    ::unlinkat(directory_.get(), name.c_str(), 0);  // a stale one is replaced at the next start
  }
  boost::system::error_code ignored;  // the descriptor is closed regardless
  socket_.close(ignored);
  retry_timer_.cancel();
}

}  // namespace agbox
