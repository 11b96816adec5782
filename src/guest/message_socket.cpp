// SPDX-License-Identifier: Apache-2.0
#include "guest/message_socket.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace agbox::guest {
namespace {

// nullopt if none arrived; an empty pair if the kernel could not install all of them.
std::optional<MessageSocket::DescriptorPair> pair_in(const msghdr& message) {
  std::vector<UniqueFd> received;
  // The macros require a mutable argument but do not modify it.
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(const_cast<msghdr*>(&message), part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= part->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
      received.emplace_back(fd);
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 || received.size() > 2) {
    return MessageSocket::DescriptorPair();
  }
  if (received.empty()) return std::nullopt;
  received.resize(2);
  return MessageSocket::DescriptorPair(std::move(received[0]), std::move(received[1]));
}

}  // namespace

void MessageSocket::send(const v1::ToDaemon& message) {
  unsent_ += guestwire::frame(message);
  write_some();
}

void MessageSocket::write_some() {
  while (!broken_ && !unsent_.empty()) {
    const ssize_t sent = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) broken_ = true;
    if (sent > 0) unsent_.erase(0, static_cast<std::size_t>(sent));
  }
  std::string().swap(unsent_);
}

void MessageSocket::read_some(const std::function<bool(v1::ToGuest&)>& on_message) {
  std::array<char, 8192> chunk;
  iovec part{chunk.data(), chunk.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    broken_ = true;
    return;
  }
  if (auto pair = pair_in(message)) descriptors_.push_back(std::move(*pair));
  reader_.feed({chunk.data(), static_cast<std::size_t>(got)});
  if (!handle_frames(on_message)) broken_ = true;
}

bool MessageSocket::handle_frames(const std::function<bool(v1::ToGuest&)>& on_message) {
  while (!broken_) {
    v1::ToGuest message;
    {
      const auto bytes =
          reader_.next();  // released before anything is started: it may be megabytes
      if (!bytes) break;
      if (!message.ParseFromString(*bytes)) return false;
    }
    if (!on_message(message)) return false;
  }
  // What remains belongs to a message in transit, or to one that had no use for it.
  return !reader_.broken() && descriptors_.size() <= (reader_.is_between_frames() ? 0U : 1U);
}

std::optional<MessageSocket::DescriptorPair> MessageSocket::take_descriptors() {
  if (descriptors_.empty()) return std::nullopt;
  DescriptorPair pair = std::move(descriptors_.front());
  descriptors_.erase(descriptors_.begin());
  return pair;
}

}  // namespace agbox::guest
