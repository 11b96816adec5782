// SPDX-License-Identifier: Apache-2.0
#include "hostile_sandbox/hoard.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace agbox::hostile {
namespace {

constexpr useconds_t kBeforeNextAttempt = 1000;  // between two attempts to take what became free

// Takes one more, or as many as go at a time; 0 if it was refused.
using Take = std::function<unsigned()>;

rlim_t most_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// In messages that are never received.
Take take_descriptors() {
  constexpr std::size_t kAtATime = 253;  // as many as one message may carry
  return [socket = -1]() mutable -> unsigned {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kAtATime * sizeof(int))> control{};
    char byte = 0;
    iovec data{&byte, 1};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(kAtATime * sizeof(int));
    std::array<int, kAtATime> same{};
    same.fill(STDIN_FILENO);
    std::memcpy(CMSG_DATA(header), same.data(), sizeof same);
    if (socket >= 0 && ::sendmsg(socket, &message, MSG_DONTWAIT) == 1) return kAtATime;
    if (socket >= 0 && errno == ETOOMANYREFS) return 0;
    std::array<int, 2> ends{};  // the one before is full
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return 0;
    socket = ends[0];
    return ::sendmsg(socket, &message, MSG_DONTWAIT) == 1 ? kAtATime : 0;
  };
}

// Every descriptor of the first half in every epoll instance of the second.
Take take_epoll_watches() {
  const rlim_t half = most_descriptors() / 2 - 16;
  std::vector<int> watched;
  for (rlim_t i = 0; i < half; ++i) {
    const int fd = ::eventfd(0, 0);
    if (fd >= 0) watched.push_back(fd);
  }
  return [epoll = -1, next = std::size_t{0}, watched = std::move(watched)]() mutable -> unsigned {
    if (epoll < 0 || next == watched.size()) {
      const int another = ::epoll_create1(0);
      if (another < 0) return 0;
      epoll = another;
      next = 0;
    }
    epoll_event event{};
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, watched[next], &event) != 0) return 0;
    ++next;
    return 1;
  };
}

Take take_inotify_instances() {
  return []() -> unsigned { return ::inotify_init() >= 0 ? 1 : 0; };
}

// The same files in every instance, because a watch of each counts.
Take take_inotify_watches() {
  constexpr int kFiles = 10'000;
  std::vector<std::string> files;
  for (int i = 0; i < kFiles; ++i) {
    files.push_back("/dev/shm/hoard." + std::to_string(i));
    ::close(::open(files.back().c_str(), O_CREAT | O_WRONLY, 0600));
  }
  return [instance = -1, next = std::size_t{0}, files = std::move(files)]() mutable -> unsigned {
    if (instance < 0 || next == files.size()) {
      const int another = ::inotify_init();
      if (another < 0) return 0;
      instance = another;
      next = 0;
    }
    if (::inotify_add_watch(instance, files[next].c_str(), IN_ATTRIB) < 0) return 0;
    ++next;
    return 1;
  };
}

Take taking(std::string_view budget) {
  if (budget == "descriptors") return take_descriptors();
  if (budget == "epoll-watches") return take_epoll_watches();
  if (budget == "inotify-instances") return take_inotify_instances();
  if (budget == "inotify-watches") return take_inotify_watches();
  return nullptr;
}

}  // namespace

void hoard(std::string_view budget) {
  const Take take = taking(budget);
  if (!take) return;
  unsigned long taken = 0;
  while (const unsigned more = take()) taken += more;
  if (taken == 0) return;
  std::printf("%lu taken\n", taken);
  std::fflush(stdout);
  while (true) {
    if (take() == 0) ::usleep(kBeforeNextAttempt);
  }
}

}  // namespace agbox::hostile
