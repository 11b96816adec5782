// SPDX-License-Identifier: Apache-2.0
#include "isolation/netlink/netlink_socket.h"

#include <libmnl/libmnl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

#include "isolation/netlink/netlink_attributes.h"

namespace agbox {
namespace {

// The kernel sends dumps in parts of at most 32 KiB, regardless of the buffer size.
struct ReceiveBuffer {
  alignas(nlmsghdr) std::array<char, 65536> bytes;
};

KernelError error_of(int number, std::uint32_t sequence = 0) {
  return {.number = number, .words = {}, .sequence = sequence};
}

// The explanation follows the header of the refused message (NETLINK_CAP_ACK).
std::string explanation(const nlmsghdr* answer) {
  std::string words;
  if ((answer->nlmsg_flags & NLM_F_ACK_TLVS) == 0) return words;
  for_each_attribute(answer, sizeof(nlmsgerr), [&](const nlattr* attribute) {
    const bool is_text = mnl_attr_get_type(attribute) == NLMSGERR_ATTR_MSG &&
                         mnl_attr_validate(attribute, MNL_TYPE_NUL_STRING) == 0;
    if (is_text) words = mnl_attr_get_str(attribute);
  });
  return words;
}

// What the answers mean for the request as a whole.
struct Answers {
  std::optional<KernelError> refusal;
  bool complete = false;

  void take_status(const nlmsghdr* answer) {
    if (answer->nlmsg_type == NLMSG_DONE) {
      complete = true;
      return;
    }
    if (mnl_nlmsg_get_payload_len(answer) < sizeof(nlmsgerr)) return;
    const auto* status = static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(answer));
    if (status->error == 0) {
      complete = true;
    } else if (!refusal) {  // the first is the cause of the others
      refusal = {.number = -status->error,
                 .words = explanation(answer),
                 .sequence = status->msg.nlmsg_seq};
    }
  }
};

template <class Each>
void for_each_message(std::span<const char> bytes, Each each) {
  // As libmnl does; the buffer is suitably aligned.
  const auto* message = reinterpret_cast<const nlmsghdr*>(bytes.data());
  int left = static_cast<int>(bytes.size());
  while (mnl_nlmsg_ok(message, left)) {
    each(message);
    message = mnl_nlmsg_next(message, &left);
  }
}

}  // namespace

std::string KernelError::text() const {
  return words.empty() ? std::generic_category().message(number) : words;
}

void NetlinkSocket::Close::operator()(mnl_socket* socket) const {
  mnl_socket_close(socket);
}

KernelResult<NetlinkSocket> NetlinkSocket::open(int bus, std::uint32_t groups) {
  mnl_socket* opened = mnl_socket_open2(bus, SOCK_CLOEXEC);
  if (opened == nullptr) return std::unexpected(error_of(errno));
  NetlinkSocket socket(opened);
  int on = 1;
  // A kernel without one of them explains less; nothing else depends on it.
  mnl_socket_setsockopt(opened, NETLINK_EXT_ACK, &on, sizeof(on));
  mnl_socket_setsockopt(opened, NETLINK_CAP_ACK, &on, sizeof(on));
  if (mnl_socket_bind(opened, groups, MNL_SOCKET_AUTOPID) < 0) {
    return std::unexpected(error_of(errno));
  }
  return socket;
}

int NetlinkSocket::fd() const {
  return mnl_socket_get_fd(socket_.get());
}

std::uint32_t NetlinkSocket::port_id() const {
  return mnl_socket_get_portid(socket_.get());
}

KernelResult<std::size_t> NetlinkSocket::receive(std::span<char> into) {
  while (true) {
    const ssize_t count = ::recv(fd(), into.data(), into.size(), MSG_DONTWAIT);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EAGAIN) return std::size_t{0};
    if (errno != EINTR) return std::unexpected(error_of(errno));
  }
}

KernelResult<> NetlinkSocket::ask(std::span<const char> messages, const Take& take) {
  // The kernel takes a batch as a whole, so it must fit; exceeding the default limit requires a
  // capability that every process that changes the firewall has.
  int size = static_cast<int>(messages.size() + 65536);
  ::setsockopt(fd(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
  if (mnl_socket_sendto(socket_.get(), messages.data(), messages.size()) < 0) {
    return std::unexpected(error_of(errno));
  }
  ReceiveBuffer buffer;
  Answers answers;
  bool interrupted = false;
  while (true) {
    const auto count = receive(buffer.bytes);
    if (!count) {
      // Drop pending answers, or they would be taken for answers to the next request.
      drain([](const nlmsghdr*) {});
      return std::unexpected(count.error());
    }
    if (*count == 0) break;  // no more answers
    for_each_message({buffer.bytes.data(), *count}, [&](const nlmsghdr* answer) {
      if ((answer->nlmsg_flags & NLM_F_DUMP_INTR) != 0) interrupted = true;
      if (answer->nlmsg_type == NLMSG_ERROR || answer->nlmsg_type == NLMSG_DONE) {
        answers.take_status(answer);
      } else if (answer->nlmsg_type >= NLMSG_MIN_TYPE) {
        take(answer);
      }
    });
  }
  if (answers.refusal) return std::unexpected(*answers.refusal);
  if (interrupted) return std::unexpected(error_of(EINTR));
  if (!answers.complete) return std::unexpected(error_of(ENODATA));
  return {};
}

bool NetlinkSocket::drain(const Take& take) {
  ReceiveBuffer buffer;
  bool complete = true;
  while (true) {
    const auto count = receive(buffer.bytes);
    if (!count) {
      // The kernel reports an overrun once; the rest of the queue follows.
      complete = false;
      if (count.error().number == ENOBUFS) continue;
      return complete;
    }
    if (*count == 0) return complete;
    for_each_message({buffer.bytes.data(), *count}, take);
  }
}

}  // namespace agbox
