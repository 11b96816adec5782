// SPDX-License-Identifier: Apache-2.0
// The firewall with its monitor and nothing else, for tests in network namespaces of their own. Its
// arguments are the instance, the pool and the resolvers. It says "loaded" and how the names of its
// bridges begin, takes a command per line, answers each with one line, and ends with its input:
//
//   prove BRIDGE [NETWORK [silent | visited]]
//                           ok | error SENTENCE: a connection is tried from that network namespace;
//                           `silent`: and no result is reported; `visited`: and before it,
//                           200 connections are made on the host, and kept
//   resolvers ADDRESS...    ok | error SENTENCE
//   health                  ok REPAIRS | error SENTENCE
//   remove                  ok | error SENTENCE, and ends
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "async/await.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "isolation/firewall_isolation.h"
#include "model/object_names.h"

namespace agbox {
namespace {

void say(const std::string& line) {
  std::cout << line << '\n' << std::flush;
}

void say(const Result<>& outcome) {
  say(outcome ? "ok" : "error " + outcome.error().message());
}

std::vector<Ipv4Address> parse_resolvers(const std::vector<std::string>& words) {
  std::vector<Ipv4Address> resolvers;
  for (const std::string& word : words) resolvers.push_back(parse_ipv4_address(word).value());
  return resolvers;
}

// As the guest of a sandbox does.
ProbeReport try_to_connect(const ProbeTarget& target) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto seconds = std::chrono::floor<std::chrono::seconds>(target.limit);
  const std::chrono::microseconds rest = target.limit - seconds;
  const timeval limit{.tv_sec = seconds.count(), .tv_usec = rest.count()};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(target.address.value);
  place.sin_port = htons(target.port);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&place), sizeof place) == 0) {
    return {.outcome = ProbeReport::Outcome::Connected};
  }
  if (errno == ECONNREFUSED) return {.outcome = ProbeReport::Outcome::Refused};
  return {.outcome = ProbeReport::Outcome::Unknown, .detail = std::strerror(errno)};
}

// As any local user can: from the address that the kernel chooses, which is the listener's, and
// from loopback. Those that do not fit into the listener's queue stay begun.
std::vector<UniqueFd> visit(const ProbeTarget& target) {
  std::vector<UniqueFd> visitors;
  for (int i = 0; i < 200; ++i) {
    visitors.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in place{};
    place.sin_family = AF_INET;
    if (i % 2 == 0) {
      place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      static_cast<void>(
          ::bind(visitors.back().get(), reinterpret_cast<sockaddr*>(&place), sizeof place));
    }
    place.sin_addr.s_addr = htonl(target.address.value);
    place.sin_port = htons(target.port);
    static_cast<void>(  // most do not wait for an answer
        ::connect(visitors.back().get(), reinterpret_cast<sockaddr*>(&place), sizeof place));
  }
  return visitors;
}

// A thread can be in a network namespace of its own.
boost::asio::awaitable<Result<ProbeReport>> probe_from(std::string network, bool is_silent,
                                                       ProbeTarget target) {
  ProbeReport report{.outcome = ProbeReport::Outcome::Unknown, .detail = "nobody tries"};
  std::thread([&] {
    const UniqueFd there(::open(network.c_str(), O_RDONLY | O_CLOEXEC));
    if (::setns(there.get(), CLONE_NEWNET) == 0) report = try_to_connect(target);
  }).join();
  if (is_silent) co_return fail(reason::kInternal, "nobody tells");
  co_return report;
}

boost::asio::awaitable<bool> obey(FirewallIsolation& isolation, const std::string& line) {
  std::istringstream words(line);
  std::string command;
  words >> command;
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  if (command == "prove") {
    const std::string network = arguments.size() > 1 ? arguments[1] : "";
    const std::string how = arguments.size() > 2 ? arguments[2] : "";
    std::vector<UniqueFd> visitors;
    say(co_await isolation.verify(arguments.at(0), [&](ProbeTarget target) {
      if (how == "visited") visitors = visit(target);
      return probe_from(network, how == "silent", target);
    }));
  } else if (command == "resolvers") {
    say(co_await isolation.set_resolvers(parse_resolvers(arguments)));
  } else if (command == "health") {
    const IsolationHealth health = isolation.health();
    say(health.shortcoming.empty() ? "ok " + std::to_string(health.repairs)
                                   : "error " + health.shortcoming);
  } else if (command == "remove") {
    say(co_await isolation.stop(true));
    co_return false;
  } else {
    say("error unknown command " + command);
  }
  co_return true;
}

boost::asio::awaitable<void> serve(FirewallIsolation& isolation, std::string instance,
                                   std::vector<Ipv4Address> resolvers, int& exit_code) {
  const auto started = co_await isolation.start(std::move(resolvers), [] {});
  if (!started) {
    say(started);
    exit_code = EXIT_FAILURE;
    co_return;
  }
  say("loaded " + bridge_prefix(instance));
  boost::asio::posix::stream_descriptor input(co_await boost::asio::this_coro::executor,
                                              ::dup(STDIN_FILENO));
  boost::asio::streambuf buffer;
  while (true) {
    const auto [problem, size] =
        co_await boost::asio::async_read_until(input, buffer, '\n', kAwait);
    if (problem) break;
    std::istream lines(&buffer);
    std::string line;
    std::getline(lines, line);
    if (!co_await obey(isolation, line)) co_return;
  }
  static_cast<void>(co_await isolation.stop(false));
}

int run(const std::vector<std::string>& arguments) {
  boost::asio::io_context home;
  boost::asio::thread_pool worker(1);
  FirewallIsolation isolation(
      home.get_executor(), worker.get_executor(),
      {.instance_id = arguments.at(0), .address_pool = parse_ipv4_network(arguments.at(1)).value()},
      Logger());
  int exit_code = EXIT_SUCCESS;
  boost::asio::co_spawn(home,
                        serve(isolation, arguments.at(0),
                              parse_resolvers({arguments.begin() + 2, arguments.end()}), exit_code),
                        [](const std::exception_ptr& failure) {
                          if (failure) std::rethrow_exception(failure);
                        });
  home.run();
  worker.join();
  return exit_code;
}

}  // namespace
}  // namespace agbox

int main(int count, char** arguments) {
  return agbox::run({arguments + 1, arguments + count});
}
