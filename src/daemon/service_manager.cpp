// SPDX-License-Identifier: Apache-2.0
#include "daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

#include "base/unique_fd.h"

namespace agbox {

ServiceManager::ServiceManager(const Environment& environment, Logger log) : log_(std::move(log)) {
  if (const auto found = environment.find("NOTIFY_SOCKET"); found != environment.end()) {
    socket_ = found->second;
  }
}

void ServiceManager::notify(std::string_view state) const {
  if (socket_.empty()) return;
  const auto log_failure = [&](const std::string& why) {
    log_.warn("could not notify the service manager", {{"socket", socket_}, {"error", why}});
  };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if ((socket_[0] != '/' && socket_[0] != '@') || socket_.size() >= sizeof(address.sun_path)) {
    return log_failure("NOTIFY_SOCKET is neither an absolute path nor an abstract name that fits");
  }
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_[0] == '@') address.sun_path[0] = '\0';  // an abstract socket
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());

  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return log_failure(std::generic_category().message(errno));
  // reinterpret_cast: required by the socket API.
  if (::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(&address), length) < 0) {
    log_failure(std::generic_category().message(errno));
  }
}

}  // namespace agbox
