// SPDX-License-Identifier: Apache-2.0
// A guest whose every word a test chooses, over a real socket.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "agbox/guest/v1/link.pb.h"
#include "base/unique_fd.h"
#include "guestwire/frame.h"
#include "guestwire/place.h"
#include "guestwire/proof.h"

namespace agbox::guestlink {

namespace asio = boost::asio;
namespace v1 = guest::v1;
template <class T>
using awaitable = asio::awaitable<T>;

class ScriptedGuest {
 public:
  explicit ScriptedGuest(const asio::any_io_executor& executor) : socket_(executor) {}

  awaitable<bool> connect(std::filesystem::path directory) {
    reader_ = guestwire::FrameReader(guestwire::kMaxFrameToGuest);
    descriptors.clear();
    is_cut_off_ = false;
    socket_ = asio::local::stream_protocol::socket(socket_.get_executor());
    // Through a descriptor: the directory's own path may be too long for the address of a socket.
    const UniqueFd place(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const auto [problem] = co_await socket_.async_connect(
        {"/proc/self/fd/" + std::to_string(place.get()) + "/" + guestwire::kSocketName},
        asio::as_tuple(asio::use_awaitable));
    co_return !problem;
  }

  // The same, but the process that connects has ended when it returns.
  bool connect_by_ended_process(const std::filesystem::path& directory) {
    const std::string path = directory / guestwire::kSocketName;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const pid_t child = ::fork();
    if (child == 0) {
      // sockaddr is the generic address type of the C API.
      const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
      ::_exit(::connect(fd.get(), generic, sizeof address) == 0 ? 0 : 1);
    }
    int status = 0;
    const bool is_connected = ::waitpid(child, &status, 0) == child && status == 0;
    socket_.assign(asio::local::stream_protocol(), fd.release());
    return is_connected;
  }

  // Nothing happens once the daemon has closed the connection; receive() then says so.
  awaitable<void> send_bytes(std::string bytes) {
    if (is_cut_off_) co_return;  // asio may wait forever for a socket that failed before
    const auto [problem, sent] = co_await asio::async_write(socket_, asio::buffer(bytes),
                                                            asio::as_tuple(asio::use_awaitable));
    is_cut_off_ = static_cast<bool>(problem);
  }
  // For a test that is no coroutine. Small frames only: the daemon may run on this thread.
  void send_now(const v1::ToDaemon& message) {
    boost::system::error_code over;  // whoever receives finds out
    asio::write(socket_, asio::buffer(guestwire::frame(message)), over);
  }
  awaitable<void> send(v1::ToDaemon message) { co_await send_bytes(guestwire::frame(message)); }

  // Nothing where the daemon has closed the connection. The descriptors that came with it, or with
  // what came before, wait in `descriptors`.
  awaitable<std::optional<v1::ToGuest>> receive() {
    while (true) {
      if (const auto bytes = reader_.next()) {
        v1::ToGuest message;
        if (message.ParseFromString(*bytes)) co_return message;
        co_return std::nullopt;
      }
      if (!co_await read_some()) co_return std::nullopt;
    }
  }
  std::deque<UniqueFd> descriptors;

  // Hello, challenge, proof (empty without a secret); returns what the daemon says then.
  awaitable<std::optional<v1::ToGuest>> shake_hands(v1::Phase phase, std::string secret = "") {
    co_await send(hello(phase, !secret.empty(), protocol_max));
    const auto challenge = co_await receive();
    if (!challenge || !challenge->has_challenge()) co_return std::nullopt;
    v1::ToDaemon proof;
    proof.mutable_proof();
    if (!secret.empty()) {
      proof.mutable_proof()->set_mac(guestwire::prove(secret, challenge->challenge().nonce()));
    }
    co_await send(proof);
    co_return co_await receive();
  }

  // The whole way until the daemon knows it.
  awaitable<bool> arrive(std::filesystem::path directory, v1::Phase phase = v1::PHASE_FRESH,
                         std::string secret = "", std::vector<std::string> execs = {}) {
    if (!co_await connect(directory)) co_return false;
    const auto welcome = co_await shake_hands(phase, secret);
    if (!welcome || !welcome->has_welcome()) co_return false;
    v1::ToDaemon prepared;
    prepared.mutable_prepared();
    co_await send(prepared);
    co_await send(execs_known(execs));
    co_return true;
  }

  static v1::ToDaemon execs_known(const std::vector<std::string>& execs, bool more = false) {
    v1::ToDaemon message;
    message.mutable_execs_known()->set_more(more);
    for (const std::string& exec_id : execs) message.mutable_execs_known()->add_exec_ids(exec_id);
    return message;
  }
  static v1::ToDaemon exec_ended(const std::string& exec_id, int code = 0) {
    v1::ToDaemon message;
    message.mutable_exec_ended()->set_exec_id(exec_id);
    message.mutable_exec_ended()->set_how(v1::ExecEnded::HOW_EXITED);
    message.mutable_exec_ended()->set_code(code);
    return message;
  }
  static v1::ToDaemon exec_truncated(const std::string& exec_id) {
    v1::ToDaemon message;
    message.mutable_exec_truncated()->set_exec_id(exec_id);
    return message;
  }

  std::uint32_t protocol_max = guestwire::kProtocolMax;

  static v1::ToDaemon hello(v1::Phase phase, bool has_secret,
                            std::uint32_t newest = guestwire::kProtocolMax) {
    v1::ToDaemon message;
    v1::Hello* hello = message.mutable_hello();
    hello->set_protocol_min(1);
    hello->set_protocol_max(newest);
    hello->set_build_id("\x01\xAB");
    hello->set_phase(phase);
    hello->set_has_secret(has_secret);
    return message;
  }

  void close() { socket_.close(); }

 private:
  awaitable<bool> read_some() {
    const auto [problem] = co_await socket_.async_wait(asio::socket_base::wait_read,
                                                       asio::as_tuple(asio::use_awaitable));
    if (problem || !socket_.is_open()) co_return false;
    std::array<char, 8192> chunk;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> control;
    iovec data{chunk.data(), chunk.size()};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got =
        ::recvmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EAGAIN) co_return true;
    if (got <= 0) co_return false;
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
      for (std::size_t at = 0; CMSG_LEN(at) < one->cmsg_len; at += sizeof(int)) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(one) + at, sizeof fd);
        descriptors.emplace_back(fd);
      }
    }
    reader_.feed({chunk.data(), static_cast<std::size_t>(got)});
    co_return true;
  }

  asio::local::stream_protocol::socket socket_;
  bool is_cut_off_ = false;
  guestwire::FrameReader reader_{guestwire::kMaxFrameToGuest};
};

}  // namespace agbox::guestlink
