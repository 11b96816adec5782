// SPDX-License-Identifier: Apache-2.0
#include "guest/enter.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "guest/child.h"
#include "guest/enter_door.h"
#include "guest/privilege.h"
#include "guestwire/place.h"

namespace agbox::guest {
namespace {

int complain(const std::string& sentence, int code) {
  const std::string line = "agbox-guest: " + sentence + "\n";
  // Where even this cannot be written, the exit code has to do.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  return code;
}

// Else `>/dev/stdout`, which opens the pipe anew, is refused to the new user.
void take_along(int fd, const Identity& user) {
  struct stat status{};
  if (::fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return;
  if (::fchown(fd, user.uid, user.gid) != 0) return;  // a comfort, not a need
}

}  // namespace

int enter(char** command) {
  const auto reply = knock();
  if (!reply) return complain(reply.error().message(), kNotExecutable);
  const v1::RuntimeUser& told = reply->user();
  const Identity user{
      told.uid(), told.gid(), {told.gids().begin(), told.gids().end()}, told.home()};
  if (::geteuid() == 0) {
    take_along(STDOUT_FILENO, user);
    take_along(STDERR_FILENO, user);
    if (const int problem = become(user)) {
      return complain(
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
  return complain("cannot run '" + std::string(*command) + "': " + std::strerror(problem),
                  problem == ENOENT ? kNotFound : kNotExecutable);
}

}  // namespace agbox::guest
