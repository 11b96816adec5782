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

constexpr std::string_view kStartIt = "start it with \"agbox daemon start\"";

// Returns 0 if a process listens, else an errno.
int try_to_connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  // The socket API takes every kind of address as a sockaddr.
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(fd.get(), generic, sizeof(address)) == 0 ? 0 : errno;
}

std::string text_of(int error_number) {
  return std::generic_category().message(error_number);
}

}  // namespace

Error unreachable_error(const std::filesystem::path& socket, std::string_view transport_message) {
  const std::string path = socket.string();
  const auto unreachable = [&](SocketProblem problem, bool exists, std::string message) {
    return Error{.kind = ErrorKind::Unreachable,
                 .code = StatusCode::Unavailable,
                 .message = std::move(message),
                 .socket = UnreachableSocket{socket, problem, exists}};
  };

  if (path.size() > kMaxSocketPathSize) {
    return unreachable(SocketProblem::PathTooLong, false,
                       "socket path " + path + " is too long: " + std::to_string(path.size()) +
                           " bytes, the limit is " + std::to_string(kMaxSocketPathSize) +
                           "; set XDG_RUNTIME_DIR to a shorter path");
  }
  struct stat file{};
  const bool exists = ::lstat(path.c_str(), &file) == 0;
  const int problem = try_to_connect(path);
  switch (problem) {
    case ENOENT:
      return unreachable(SocketProblem::Missing, exists,
                         "agboxd is not running: socket " + path + " does not exist" + "; " +
                             std::string(kStartIt));
    case ENOTDIR:
      return unreachable(SocketProblem::NotASocket, false,
                         "cannot connect to agboxd at " + path +
                             ": a parent of this path is not a directory; check XDG_RUNTIME_DIR");
    case EACCES:
    case EPERM:
      return unreachable(SocketProblem::PermissionDenied, exists,
                         "cannot connect to agboxd at " + path + ": " + text_of(problem) +
                             "; each user runs their own agboxd, so XDG_RUNTIME_DIR must be a "
                             "directory of this user");
    case ECONNREFUSED:
      if (exists && !S_ISSOCK(file.st_mode) && !S_ISLNK(file.st_mode)) {
        return unreachable(SocketProblem::NotASocket, true,
                           "cannot connect to agboxd: " + path +
                               " is not a socket; remove it, then " + std::string(kStartIt));
      }
      return unreachable(
          SocketProblem::NotListening, exists,
          "agboxd is not running: no process listens on " + path + "; " + std::string(kStartIt));
    case 0:
      return unreachable(SocketProblem::ConnectionLost, exists,
                         "lost the connection to agboxd at " + path + " (" +
                             std::string(transport_message) +
                             "); it serves only the user that runs it, see its log with "
                             "\"journalctl --user -u agboxd\"");
    default:
      return unreachable(SocketProblem::Other, exists,
                         "cannot connect to agboxd at " + path + ": " + text_of(problem) + "; " +
                             std::string(kStartIt));
  }
}

}  // namespace agbox::sdk
