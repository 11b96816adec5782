// SPDX-License-Identifier: Apache-2.0
#include "guest/enter.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "guest/child.h"
#include "guest/enter_socket.h"
#include "guest/privilege.h"
#include "guestwire/place.h"

namespace agbox::guest {
namespace {

int fail_with(const std::string& message, int code) {
  const std::string line = "agbox-guest: " + message + "\n";
  // If even this fails, the exit code must do.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  return code;
}

// Otherwise `>/dev/stdout`, which reopens the pipe, fails for the new user.
void give_pipe_to(int fd, const Identity& user) {
  struct stat status{};
  if (::fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return;
  if (::fchown(fd, user.uid, user.gid) != 0) return;  // best effort
}

}  // namespace

int enter(char** command) {
  const auto reply = request_enter();
  if (!reply) return fail_with(reply.error().message(), kNotExecutable);
  const v1::RuntimeUser& runtime_user = reply->user();
  const Identity user{runtime_user.uid(),
                      runtime_user.gid(),
                      {runtime_user.gids().begin(), runtime_user.gids().end()},
                      runtime_user.home()};
  if (::geteuid() == 0) {
    give_pipe_to(STDOUT_FILENO, user);
    give_pipe_to(STDERR_FILENO, user);
    if (const int problem = switch_user(user)) {
      return fail_with(
          "cannot become uid " + std::to_string(user.uid) + ": " + std::strerror(problem),
          kNotExecutable);
    }
  }
  if (::geteuid() == user.uid) {
    ::setenv("HOME", user.home.c_str(), 1);
    ::setenv("USER", guestwire::kUserName, 1);
  }
  if (*command == nullptr) {
    while (true) ::pause();
  }
  ::execvp(*command, command);
  const int problem = errno;
  return fail_with("cannot run '" + std::string(*command) + "': " + std::strerror(problem),
                   problem == ENOENT ? kNotFound : kNotExecutable);
}

}  // namespace agbox::guest
