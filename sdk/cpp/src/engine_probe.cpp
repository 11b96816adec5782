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

constexpr std::chrono::seconds kPatience{3};
constexpr std::size_t kLongestAnswer = 16384;
// HTTP 1.0: the engine closes the connection behind its answer.
constexpr std::string_view kQuestion = "HEAD /_ping HTTP/1.0\r\nHost: docker\r\n\r\n";

bool wait_for(int fd, short events, steady_clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd waited{.fd = fd, .events = events, .revents = 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(left.count()));
    if (ready >= 0 || errno != EINTR) return ready == 1;
  }
}

// 0, or the errno of what went wrong. A queue of connections that is full counts as a timeout.
int connect_to(int fd, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return ENAMETOOLONG;
  std::memcpy(address.sun_path, path.data(), path.size());
  // The socket interface takes every kind of address as a sockaddr.
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(fd, generic, sizeof(address)) == 0) return 0;
  return errno == EAGAIN ? ETIMEDOUT : errno;
}

int ask(int fd, std::string& answer) {
  const auto deadline = steady_clock::now() + kPatience;
  // So short a question fits into the buffer of a new connection.
  if (::send(fd, kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL) < 0) return errno;
  while (answer.size() < kLongestAnswer) {
    if (!wait_for(fd, POLLIN, deadline)) return ETIMEDOUT;
    std::array<char, 4096> part{};
    const ssize_t length = ::recv(fd, part.data(), part.size(), 0);
    if (length == 0) return 0;
    if (length < 0 && errno != EINTR && errno != EAGAIN) return errno;
    if (length > 0) answer.append(part.data(), static_cast<std::size_t>(length));
  }
  return 0;
}

}  // namespace

std::string header_of(std::string_view answer, std::string_view name) {
  const auto same = [](char left, char right) {
    return std::tolower(static_cast<unsigned char>(left)) ==
           std::tolower(static_cast<unsigned char>(right));
  };
  while (!answer.empty()) {
    const std::size_t end = answer.find("\r\n");
    const std::string_view line = answer.substr(0, end);
    if (line.empty()) return {};  // the headers end here
    answer.remove_prefix(end == std::string_view::npos ? answer.size() : end + 2);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !std::ranges::equal(line.substr(0, colon), name, same)) {
      continue;
    }
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string_view::npos ? std::string() : std::string(line.substr(value));
  }
  return {};
}

EngineTraces probe_engine(const std::filesystem::path& socket) {
  EngineTraces traces{.socket = socket};
  const auto give_up = [&](int error_number) {
    traces.problem = std::generic_category().message(error_number);
    traces.is_denied = error_number == EACCES || error_number == EPERM;
    return traces;
  };
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return give_up(errno);
  if (const int problem = connect_to(fd.get(), socket.string())) return give_up(problem);
  std::string answer;
  if (const int problem = ask(fd.get(), answer)) return give_up(problem);
  if (!answer.starts_with("HTTP/1.")) {
    traces.problem = "what answers there is no container engine";
    return traces;
  }
  traces.server = header_of(answer, "Server");
  traces.api_version = header_of(answer, "Api-Version");
  return traces;
}

}  // namespace agbox::sdk
