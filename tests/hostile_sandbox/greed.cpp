// SPDX-License-Identifier: Apache-2.0
#include "hostile_sandbox/greed.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>

#include "base/unique_fd.h"

namespace agbox::hostile {
namespace {

constexpr std::size_t kHeldOpen = 64;
constexpr std::size_t kHeldInACrowd = 256;
constexpr useconds_t kPause = 1000;
// A frame of 5 bytes: ToDaemon.prepared.failure, of one byte.
constexpr auto kTextThatIsNotUtf8 = std::to_array<char>({5, 0, 0, 0, 0x1A, 3, 0x0A, 1, '\xFF'});

UniqueFd open_connection(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  // sockaddr is the base class of the C interface.
  if (!fd ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return {};
  }
  return fd;
}

}  // namespace

unsigned long send_garbage(const std::string& socket, unsigned connections) {
  std::deque<UniqueFd> held;
  std::array<char, 4096> garbage;
  unsigned long refusals = 0;
  for (unsigned made = 0; made < connections;) {
    UniqueFd one = open_connection(socket);
    if (!one) {
      ++refusals;
      ::usleep(kPause);
      continue;
    }
    ++made;
    if (::getrandom(garbage.data(), garbage.size(), 0) < 0) garbage.fill('x');
    // Random bytes are hardly ever a frame; every second message is.
    if (made % 2 == 0) std::ranges::copy(kTextThatIsNotUtf8, garbage.begin());
    // A connection that is closed immediately is an answer too.
    (void)::send(one.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    held.push_back(std::move(one));
    if (held.size() > kHeldOpen) held.pop_front();
  }
  return refusals;
}

void crowd(const std::string& directory, unsigned racers) {
  const auto names = std::to_array({directory + "/guest.sock", directory + "/guest.sock.new"});
  for (unsigned others = 1; others < racers && ::fork() != 0;) ++others;
  std::deque<UniqueFd> held;
  while (true) {
    bool is_there = false;
    for (const std::string& name : names) {
      UniqueFd one = open_connection(name);
      is_there = is_there || one || errno != ENOENT;
      if (one) held.push_back(std::move(one));
      if (held.size() > kHeldInACrowd) held.pop_front();
    }
    // Until a daemon listens they would only keep it from starting.
    if (!is_there) ::usleep(kPause);
  }
}

void fill_disk(const std::string& file) {
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd) return;
  static const std::array<char, 1 << 16> block{};
  // The less free space, the smaller the writes: down to one byte, so that nothing is left.
  for (std::size_t size = block.size();;) {
    const bool took = ::write(fd.get(), block.data(), size) > 0;
    size = took ? block.size() : std::max<std::size_t>(size / 2, 1);
  }
}

void multiply() {
  ::signal(SIGTERM, SIG_IGN);
  while (true) {
    if (::fork() == 0) ::setsid();
  }
}

}  // namespace agbox::hostile
