// SPDX-License-Identifier: Apache-2.0
#include "guest/output_relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace agbox::guest {

void Tail::add(std::string_view bytes) {
  if (bytes.size() >= kSize) bytes.remove_prefix(bytes.size() - kSize);
  if (text_.size() + bytes.size() > kSize) text_.erase(0, text_.size() + bytes.size() - kSize);
  text_.append(bytes);
}

void OutputRelay::start(UniqueFd from) {
  from_ = std::move(from);
  for (const int fd : {from_.get(), to_}) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags >= 0) ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  }
}

void OutputRelay::collect(Watches& watches) {
  if (!pending_.empty()) {
    watches.add(to_, POLLOUT, [this] { write_some(); });
  } else if (from_) {
    watches.add(from_.get(), POLLIN, [this] {
      read_some();
      write_some();
    });
  }
}

bool OutputRelay::read_some() {
  std::array<char, 8192> chunk;
  const ssize_t got = ::read(from_.get(), chunk.data(), chunk.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (got <= 0) {  // no writer is left
    from_.reset();
    return false;
  }
  const std::string_view bytes(chunk.data(), static_cast<std::size_t>(got));
  if (remember_) tail_.add(bytes);
  pending_.append(bytes);
  return true;
}

void OutputRelay::write_some() {
  while (!pending_.empty()) {
    const ssize_t written = ::write(to_, pending_.data(), pending_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    if (written <= 0) break;  // the log is gone: all further output is lost
    pending_.erase(0, static_cast<std::size_t>(written));
  }
  pending_ = {};
}

void OutputRelay::finish(std::chrono::milliseconds timeout) {
  drain();
  const Moment until = std::chrono::steady_clock::now() + timeout;
  while (true) {
    write_some();
    if (pending_.empty()) return;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return;
    pollfd log{to_, POLLOUT, 0};
    ::poll(&log, 1, static_cast<int>(left.count()));
  }
}

// Only what the pipe holds now: a child may never stop writing.
void OutputRelay::drain() {
  int waiting = 0;
  if (!from_ || ::ioctl(from_.get(), FIONREAD, &waiting) != 0) return;
  const std::size_t whole = pending_.size() + static_cast<std::size_t>(waiting);
  while (pending_.size() < whole && read_some()) {
  }
}

}  // namespace agbox::guest
