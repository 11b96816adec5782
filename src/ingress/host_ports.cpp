// SPDX-License-Identifier: Apache-2.0
#include "ingress/host_ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/shown_path.h"
#include "base/text_file.h"
#include "base/unique_fd.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

enum class Availability { Free, Taken, Unknown };

// As the engine will do it, only shorter: nothing ever listens.
Availability try_bind(const v1::PortMapping& port) {
  const bool is_tcp = port.protocol() == v1::PORT_PROTOCOL_TCP;
  if (!is_tcp && port.protocol() != v1::PORT_PROTOCOL_UDP) return Availability::Unknown;
  const UniqueFd socket(::socket(AF_INET, (is_tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0));
  if (!socket) return Availability::Unknown;
  // Connections that have ended, and are remembered for a minute, are in nobody's way.
  const int on = 1;
  if (is_tcp) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port.host_port()));
  // The API of sockets takes every kind of address by this type.
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(socket.get(), generic, sizeof address) == 0) return Availability::Free;
  return errno == EADDRINUSE ? Availability::Taken : Availability::Unknown;
}

struct BoundSocket {
  std::string inode;
  std::string uid;
  bool listens = false;
};

// As the kernel writes the addresses that take packets to 127.0.0.1.
bool takes_loopback(std::string_view address) {
  std::array<char, 9> loopback{};
  std::snprintf(loopback.data(), loopback.size(), "%08X", htonl(INADDR_LOOPBACK));
  const std::string_view last = address.substr(address.size() < 8 ? 0 : address.size() - 8);
  return last == loopback.data() || address.find_first_not_of('0') == std::string_view::npos;
}

// Sockets with this port in a table such as /proc/net/tcp.
void add_bound(const fs::path& table, std::uint32_t port, std::vector<BoundSocket>& found) {
  constexpr std::string_view kListens = "0A";      // TCP
  constexpr std::string_view kUnconnected = "07";  // UDP
  std::istringstream lines(read_text_file(table).value_or(""));
  std::string line;
  std::getline(lines, line);  // its head
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
    fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >>
        timeout >> inode;
    const std::size_t colon = local.find(':');
    if (!fields || colon == std::string::npos) continue;
    std::uint32_t bound = 0;
    std::from_chars(local.data() + colon + 1, local.data() + local.size(), bound, 16);
    // Without an inode it belongs to no process any more.
    if (bound != port || inode == "0" || !takes_loopback(local.substr(0, colon))) continue;
    found.push_back(
        {.inode = inode, .uid = uid, .listens = state == kListens || state == kUnconnected});
  }
}

std::optional<BoundSocket> find_bound(const v1::PortMapping& port) {
  const std::string table = "/proc/net/" + std::string(protocol_name(port.protocol()));
  std::vector<BoundSocket> found;
  add_bound(table, port.host_port(), found);
  add_bound(table + "6", port.host_port(), found);
  for (const BoundSocket& socket : found) {
    if (socket.listens) return socket;
  }
  return found.empty() ? std::nullopt : std::optional(found.front());
}

// Counts down what may still be looked at.
class Budget {
 public:
  explicit Budget(const HolderSearch& search)
      : descriptors_(search.descriptors), end_(Clock::now() + search.time) {}

  bool is_spent() const { return descriptors_ == 0 || Clock::now() >= end_; }
  void take_descriptor() { --descriptors_; }

 private:
  using Clock = std::chrono::steady_clock;
  std::size_t descriptors_;
  Clock::time_point end_;
};

bool has_socket(const fs::path& process, const std::string& socket, Budget& budget) {
  std::error_code problem;  // it has ended, or is another user's
  fs::directory_iterator descriptors(process / "fd", problem);
  while (!problem && descriptors != fs::directory_iterator() && !budget.is_spent()) {
    budget.take_descriptor();
    std::error_code closed;
    if (fs::read_symlink(descriptors->path(), closed) == socket) return true;
    descriptors.increment(problem);
  }
  return false;
}

std::optional<std::string> find_process(const BoundSocket& bound, Budget budget) {
  const std::string socket = "socket:[" + bound.inode + "]";
  std::error_code problem;
  fs::directory_iterator processes("/proc", problem);
  while (!problem && processes != fs::directory_iterator() && !budget.is_spent()) {
    const fs::path process = processes->path();
    const std::string pid = process.filename().string();
    const bool is_process = pid.find_first_not_of("0123456789") == std::string::npos;  // not "self"
    if (is_process && has_socket(process, socket, budget)) {
      std::string name = read_text_file(process / "comm").value_or("");
      if (name.ends_with('\n')) name.pop_back();
      return "process " + shown_path(name) + " (pid " + pid + ")";
    }
    processes.increment(problem);
  }
  return std::nullopt;
}

std::string describe_holder(const BoundSocket& bound, const HolderSearch& search) {
  const uid_t self = ::geteuid();
  // The kernel shows the descriptors of other users' processes to root alone.
  const bool may_see = self == 0 || bound.uid == std::to_string(self);
  const auto process = may_see ? find_process(bound, Budget(search)) : std::nullopt;
  return process.value_or("a process of user " + bound.uid);
}

}  // namespace

std::optional<TakenPort> find_taken_port(const PortMappings& ports, const HolderSearch& search) {
  for (const v1::PortMapping& port : ports) {
    const Availability availability = try_bind(port);
    if (availability == Availability::Free) continue;
    const auto bound = find_bound(port);
    // Who may not bind a port below 1024 still sees who listens there.
    const bool is_taken = availability == Availability::Taken || (bound && bound->listens);
    if (is_taken) {
      return TakenPort{.port = port,
                       .holder = bound ? describe_holder(*bound, search) : "another process"};
    }
  }
  return std::nullopt;
}

}  // namespace agbox
