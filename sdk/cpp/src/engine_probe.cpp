// SPDX-License-Identifier: Apache-2.0
#include "engine_probe.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <system_error>

#include "base/unique_fd.h"

namespace agbox::sdk {

namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kProbeTimeout{3};
constexpr std::size_t kMaxResponseSize = 16384;
// HTTP 1.0, so that the engine closes the connection after its response.
constexpr std::string_view kPingRequest = "HEAD /_ping HTTP/1.0\r\nHost: docker\r\n\r\n";

bool wait_for(int fd, short events, steady_clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waited{.fd = fd, .events = events, .revents = 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(left.count()));
    if (ready >= 0 || errno != EINTR) return ready == 1;
  }
}

// Returns 0 or an errno. A full accept queue counts as a timeout.
int connect_to(int fd, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.data(), path.size());
  // The socket API takes every kind of address as a sockaddr.
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(fd, generic, sizeof(address)) == 0) return 0;
  return errno == EAGAIN ? ETIMEDOUT : errno;
}

int send_ping(int fd, std::string& response) {
  const auto deadline = steady_clock::now() + kProbeTimeout;
  // So short a request fits into the buffer of a new connection.
  if (::send(fd, kPingRequest.data(), kPingRequest.size(), MSG_NOSIGNAL) < 0) return errno;
  while (response.size() < kMaxResponseSize) {
    if (!wait_for(fd, POLLIN, deadline)) return ETIMEDOUT;
    std::array<char, 4096> part{};
    const ssize_t length = ::recv(fd, part.data(), part.size(), 0);
    if (length == 0) return 0;
    if (length < 0 && errno != EINTR && errno != EAGAIN) return errno;
    if (length > 0) response.append(part.data(), static_cast<std::size_t>(length));
  }
  return 0;
}

}  // namespace

std::string header_of(std::string_view response, std::string_view name) {
  const auto same = [](char left, char right) {
    return std::tolower(static_cast<unsigned char>(left)) ==
           std::tolower(static_cast<unsigned char>(right));
  };
  while (!response.empty()) {
    const std::size_t end = response.find("\r\n");
    const std::string_view line = response.substr(0, end);
    if (line.empty()) return {};  // the headers end here
    response.remove_prefix(end == std::string_view::npos ? response.size() : end + 2);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !std::ranges::equal(line.substr(0, colon), name, same)) {
      continue;
    }
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string_view::npos ? std::string() : std::string(line.substr(value));
  }
  return {};
}

EngineInspection probe_engine(const std::filesystem::path& socket) {
  EngineInspection inspection{.socket = socket};
  const auto failed = [&](int error_number) {
    inspection.problem = std::generic_category().message(error_number);
    inspection.is_denied = error_number == EACCES || error_number == EPERM;
    return inspection;
  };
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return failed(errno);
  if (const int problem = connect_to(fd.get(), socket.string())) return failed(problem);
  std::string response;
  if (const int problem = send_ping(fd.get(), response)) return failed(problem);
  if (!response.starts_with("HTTP/1.")) {
    inspection.problem = "the response is not that of a container engine";
    return inspection;
  }
  inspection.server = header_of(response, "Server");
  inspection.api_version = header_of(response, "Api-Version");
  return inspection;
}

}  // namespace agbox::sdk
