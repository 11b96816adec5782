// SPDX-License-Identifier: Apache-2.0
// Any bytes as an engine's answer, over a real socket: errors are fine, crashes and hangs are not.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/unique_fd.h"
#include "engine/docker/api/http_connection.h"

using namespace agbox;

namespace {

struct Listener {
  std::string path;
  UniqueFd fd;

  Listener() {
    char directory[] = "/tmp/docker-http-fuzz-XXXXXX";
    if (::mkdtemp(directory) == nullptr) std::abort();
    path = std::string(directory) + "/s";
    fd.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    // The sockets API takes every kind of address as a sockaddr.
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(fd.get(), 1) != 0) {
      std::abort();
    }
  }
  ~Listener() {
    ::unlink(path.c_str());
    ::rmdir(path.substr(0, path.size() - 2).c_str());
  }
};

boost::asio::awaitable<void> ask(const Listener& listener, std::string_view answer) {
  auto connection = co_await HttpConnection::connect(listener.path, std::nullopt);
  if (!connection) std::abort();
  const UniqueFd engine(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (::send(engine.get(), answer.data(), answer.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(answer.size())) {
    std::abort();
  }
  ::shutdown(engine.get(), SHUT_WR);
  const auto status = co_await (*connection)->send({.method = "GET", .target = "/x"});
  if (status) (void)co_await (*connection)->read_all(std::size_t{1} << 20);
  (void)(*connection)->is_reusable();
  (void)(*connection)->is_idle();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Listener listener;
  if (size > 65536) return 0;  // more than a socket takes without a reader
  boost::asio::io_context io;
  boost::asio::co_spawn(io, ask(listener, {reinterpret_cast<const char*>(data), size}),
                        [](const std::exception_ptr& failure) {
                          if (failure) std::abort();
                        });
  io.run();
  return 0;
}
