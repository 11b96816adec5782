// SPDX-License-Identifier: Apache-2.0
// What an enemy runs in a sandbox:
//
//   hostile-sandbox calls                   every call of calls.h; a line "name <tab> answer" each,
//   the
//                                           answer being `ok`, an errno's name, or the signal that
//                                           it died of
//   hostile-sandbox garbage SOCKET COUNT    so many connections to it that send garbage
//   hostile-sandbox crowd DIRECTORY COUNT   so many processes that crowd the guest's socket in it,
//                                           until they are killed
//   hostile-sandbox fill FILE               all of the disk that the file is on, until it is killed
//   hostile-sandbox hoard BUDGET            all that the kernel lets this user have of something,
//                                           until it is killed: descriptors, epoll-watches,
//                                           inotify-instances or inotify-watches
//   hostile-sandbox multiply                all processes and all CPU time, until it is killed
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hostile_sandbox/calls.h"
#include "hostile_sandbox/greed.h"
#include "hostile_sandbox/hoard.h"

namespace agbox::hostile {
namespace {

constexpr unsigned kPatience = 10;  // seconds per call

// In a process of its own: a call may kill whoever makes it, or change it for good.
std::string answer_of(const Call& call) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kPatience);
    const int answer = call.attempt();
    const ssize_t told = ::write(ends[1], &answer, sizeof answer);
    ::_exit(told == sizeof answer ? 0 : 1);
  }
  ::close(ends[1]);
  int answer = 0;
  int status = 0;
  const ssize_t got = ::read(ends[0], &answer, sizeof answer);
  ::close(ends[0]);
  if (child < 0 || ::waitpid(child, &status, 0) != child) return "no child";
  if (WIFSIGNALED(status)) return std::string("SIG") + ::sigabbrev_np(WTERMSIG(status));
  if (got != sizeof answer) return "no answer";
  const char* name = answer == 0 ? "ok" : ::strerrorname_np(answer);
  return name != nullptr ? name : std::to_string(answer);
}

int try_calls() {
  for (const Call& call : all_calls()) {
    const std::string answer = answer_of(call);
    std::printf("%.*s\t%s\n", static_cast<int>(call.name.size()), call.name.data(), answer.c_str());
    std::fflush(stdout);  // otherwise a child would print it again
  }
  return 0;
}

std::optional<unsigned> number_of(std::string_view text) {
  unsigned number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

int send_garbage_to(const std::string& socket, std::string_view count) {
  const auto connections = number_of(count);
  if (!connections) return 2;
  const unsigned long refusals = send_garbage(socket, *connections);
  std::printf("%u connections, turned away %lu times\n", *connections, refusals);
  return 0;
}

int crowd_around(const std::string& directory, std::string_view count) {
  const auto racers = number_of(count);
  if (racers) crowd(directory, *racers);
  return 2;
}

int run(std::span<char*> arguments) {
  const std::string_view what = arguments.size() > 1 ? arguments[1] : "";
  if (what == "calls" && arguments.size() == 2) return try_calls();
  if (what == "garbage" && arguments.size() == 4) {
    return send_garbage_to(arguments[2], arguments[3]);
  }
  if (what == "crowd" && arguments.size() == 4) return crowd_around(arguments[2], arguments[3]);
  if (what == "fill" && arguments.size() == 3) {
    fill_disk(arguments[2]);
    std::perror(arguments[2]);
    return 1;
  }
  if (what == "hoard" && arguments.size() == 3) {
    hoard(arguments[2]);
    std::fputs("hoard: no such budget, or nothing of it is left\n", stderr);
    return 1;
  }
  if (what == "multiply" && arguments.size() == 2) multiply();
  std::fputs(
      "hostile-sandbox calls | garbage SOCKET COUNT | crowd DIRECTORY COUNT | fill FILE |"
      " hoard BUDGET | multiply\n",
      stderr);
  return 2;
}

}  // namespace
}  // namespace agbox::hostile

int main(int argc, char** argv) {
  return agbox::hostile::run({argv, static_cast<std::size_t>(argc)});
}
