// SPDX-License-Identifier: Apache-2.0
// One connection as an untrusted guest has it: it sends any bytes and any descriptors, never
// blocks, and checks that the daemon keeps to the protocol towards it.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agbox/guest/v1/link.pb.h"
#include "base/check.h"
#include "base/unique_fd.h"
#include "guestwire/frame.h"
#include "guestwire/place.h"

namespace agbox::guestlink {

class GuestSocket {
 public:
  static constexpr unsigned kMaxDescriptors = 4;

  // nullopt if the daemon does not listen, or its queue is full.
  static std::optional<GuestSocket> connect(const std::filesystem::path& directory) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // Through a descriptor: the directory's own path may be too long for the address of a socket.
    const UniqueFd place(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!fd || !place) return std::nullopt;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path =
        "/proc/self/fd/" + std::to_string(place.get()) + "/" + guestwire::kSocketName;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    // sockaddr is the C interface's base class.
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      return std::nullopt;
    }
    return GuestSocket(std::move(fd));
  }

  // Neither side has closed it.
  bool is_open() const { return static_cast<bool>(fd_); }
  void close() { fd_.reset(); }
  void close_for_writing() {
    if (fd_) ::shutdown(fd_.get(), SHUT_WR);
  }

  bool reads() const { return reads_; }
  void set_reads(bool reads) {
    reads_ = reads;
    has_always_read_ = has_always_read_ && reads;
  }
  // It has read every message before the next step.
  bool has_always_read() const { return has_always_read_; }

  bool was_challenged() const { return !nonce_.empty(); }
  const std::string& nonce() const { return nonce_; }
  bool was_welcomed() const { return was_welcomed_; }
  std::optional<std::string> proved;  // the secret that it proved to have

  // The descriptors go with the first byte.
  void send(std::string bytes, unsigned descriptors) {
    if (!fd_ || bytes.empty()) return;
    unsent_.push_back({std::move(bytes), 0, std::min(descriptors, kMaxDescriptors)});
    flush();
  }
  // True if the kernel took any of what is to be sent.
  bool flush() {
    bool has_sent = false;
    while (fd_ && !unsent_.empty()) {
      Outgoing& first = unsent_.front();
      const ssize_t sent = send_some(first);
      if (sent < 0 && errno == EAGAIN) break;
      has_sent = true;
      if (sent < 0) {  // the daemon has closed it; what it sent before can still be read
        unsent_.clear();
        break;
      }
      first.descriptors = 0;
      first.sent += static_cast<std::size_t>(sent);
      if (first.sent == first.bytes.size()) unsent_.pop_front();
    }
    return has_sent;
  }

  // True if the daemon had sent anything, or has closed it.
  bool receive() {
    bool has_received = false;
    while (fd_ && reads_ && take_what_came()) has_received = true;
    return has_received;
  }
  // The next whole message.
  std::optional<guest::v1::ToGuest> next() {
    const auto bytes = reader_.next();
    AGBOX_CHECK(!reader_.broken(), "the daemon sends frames within their bounds");
    if (!bytes) return std::nullopt;
    guest::v1::ToGuest message;
    AGBOX_CHECK(message.ParseFromString(*bytes), "the daemon sends messages that can be parsed");
    check(message);
    return message;
  }

 private:
  struct Outgoing {
    std::string bytes;
    std::size_t sent = 0;
    unsigned descriptors = 0;
  };

  explicit GuestSocket(UniqueFd fd) : fd_(std::move(fd)) {}

  ssize_t send_some(const Outgoing& outgoing) const {
    const std::string_view rest = std::string_view(outgoing.bytes).substr(outgoing.sent);
    // sendmsg() takes what it only reads as if it could write there.
    iovec data{const_cast<char*>(rest.data()), rest.size()};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control{};
    if (outgoing.descriptors > 0) {
      std::array<int, kMaxDescriptors> same{};
      same.fill(fd_.get());
      const std::size_t size = outgoing.descriptors * sizeof(int);
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(size);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(size);
      std::memcpy(CMSG_DATA(header), same.data(), size);
    }
    return ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  bool take_what_came() {
    static std::array<char, 65536> chunk;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control;
    iovec data{chunk.data(), chunk.size()};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EAGAIN) return false;
    if (got <= 0) {  // closed by the daemon; a reset if it had not read everything
      fd_.reset();
      return true;
    }
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
      for (std::size_t at = 0; CMSG_LEN(at) < one->cmsg_len; at += sizeof(int)) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(one) + at, sizeof fd);
        const UniqueFd file(fd);
        ++descriptors_;
      }
    }
    reader_.feed({chunk.data(), static_cast<std::size_t>(got)});
    return true;
  }

  // Nothing but a challenge for a connection that was not admitted.
  void check(const guest::v1::ToGuest& message) {
    if (!was_challenged()) {
      AGBOX_CHECK(message.has_challenge(), "a challenge is the daemon's first message");
      nonce_ = message.challenge().nonce();
      AGBOX_CHECK(!nonce_.empty(), "a challenge has a nonce");
    } else if (!was_welcomed_) {
      AGBOX_CHECK(message.has_welcome(), "a welcome is the daemon's second message");
      was_welcomed_ = true;
    } else {
      AGBOX_CHECK(!message.has_challenge() && !message.has_welcome() &&
                      message.body_case() != guest::v1::ToGuest::BODY_NOT_SET,
                  "a guest that was welcomed gets orders");
      const std::size_t with = message.has_start_exec() ? 2 : message.has_attach_input() ? 1 : 0;
      AGBOX_CHECK(descriptors_ >= with, "every order comes with its descriptors");
      descriptors_ -= with;
    }
  }

  UniqueFd fd_;
  std::deque<Outgoing> unsent_;
  bool reads_ = true;
  bool has_always_read_ = true;
  guestwire::FrameReader reader_{guestwire::kMaxFrameToGuest};
  std::string nonce_;
  bool was_welcomed_ = false;
  std::size_t descriptors_ = 0;  // that came, and not yet with a whole order
};

}  // namespace agbox::guestlink
