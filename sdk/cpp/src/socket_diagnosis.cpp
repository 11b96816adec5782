// SPDX-License-Identifier: Apache-2.0
#include "socket_diagnosis.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "base/unique_fd.h"

namespace agbox::sdk {

namespace {

constexpr std::string_view kStartIt =
    "start it with \"systemctl --user start agboxd\" or run \"agboxd\"";

// 0 where somebody listens, else errno.
int try_to_connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  // The socket interface takes every kind of address as a sockaddr.
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(fd.get(), generic, sizeof(address)) == 0 ? 0 : errno;
}

std::string text_of(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace

Error unreachable_error(const std::filesystem::path& socket, std::string_view transport_words) {
  const std::string path = socket.string();
  const auto unreachable = [&](SocketProblem problem, bool exists, std::string message) {
    return Error{.kind = ErrorKind::Unreachable,
                 .code = StatusCode::Unavailable,
                 .message = std::move(message),
                 .socket = UnreachableSocket{socket, problem, exists}};
  };

  if (path.size() > kLongestSocketPath) {
    return unreachable(SocketProblem::PathTooLong, false,
                       "the socket path " + path + " has " + std::to_string(path.size()) +
                           " bytes, but the operating system takes at most " +
                           std::to_string(kLongestSocketPath) +
                           "; set XDG_RUNTIME_DIR to a shorter folder");
  }
  struct stat file{};
  const bool exists = ::lstat(path.c_str(), &file) == 0;
  const int problem = try_to_connect(path);
  switch (problem) {
    case ENOENT:
      return unreachable(
          SocketProblem::Missing, exists,
          "agboxd is not running: there is no socket at " + path + "; " + std::string(kStartIt));
    case ENOTDIR:
      return unreachable(
          SocketProblem::NotASocket, false,
          "agboxd cannot listen at " + path +
              ": a part of that path is a file, not a folder; check XDG_RUNTIME_DIR");
    case EACCES:
    case EPERM:
      return unreachable(SocketProblem::PermissionDenied, exists,
                         "may not connect to agboxd at " + path + ": " + text_of(problem) +
                             "; every user runs a daemon of their own, so XDG_RUNTIME_DIR must "
                             "be a folder of yours");
    case ECONNREFUSED:
      if (exists && !S_ISSOCK(file.st_mode) && !S_ISLNK(file.st_mode)) {
        return unreachable(
            SocketProblem::NotASocket, true,
            "what is at " + path + " is not a socket; move it away, then " + std::string(kStartIt));
      }
      return unreachable(SocketProblem::NobodyListens, exists,
                         "agboxd is not running: nobody listens on the socket that was left at " +
                             path + "; " + std::string(kStartIt));
    case 0:
      return unreachable(SocketProblem::ConnectionLost, exists,
                         "lost the connection to agboxd at " + path + " (" +
                             std::string(transport_words) +
                             "); it serves only the user that it runs as, see its log with "
                             "\"journalctl --user -u agboxd\"");
    default:
      return unreachable(SocketProblem::Other, exists,
                         "cannot connect to agboxd at " + path + ": " + text_of(problem) + "; " +
                             std::string(kStartIt));
  }
}

}  // namespace agbox::sdk
