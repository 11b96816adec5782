// SPDX-License-Identifier: Apache-2.0
#include "guest/incoming_trees.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/file_io.h"
#include "guest/child.h"
#include "guest/receive.h"

namespace agbox::guest {
namespace {

// The daemon sends a few at a time; this only bounds our processes.
constexpr std::size_t kMaxReceivers = 16;
// Of a report, which has a path in it. Less than the pipe takes at once.
constexpr std::size_t kMaxReport = 8192;

}  // namespace

void IncomingTrees::begin(const v1::ReceiveTree& order, UniqueFd stream, const Identity& user,
                          int null) {
  if (!stream) return fail(order.id(), "too many open files in the guest");
  if (receivers_.size() >= kMaxReceivers) return fail(order.id(), "too many concurrent copies");
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(order.id(), std::string("cannot create a pipe: ") + std::strerror(errno));
  }
  UniqueFd reading(ends[0]);
  const UniqueFd writing(ends[1]);
  const auto started = start_child({.arguments = receive_command(order, user),
                                    .environment = {},
                                    .identity = {},  // root
                                    .in = stream.get(),
                                    .out = writing.get(),
                                    .err = null});
  if (!started) return fail(order.id(), started.error().reason);
  receivers_.emplace(*started, Receiver{.id = order.id(), .report = std::move(reading)});
}

void IncomingTrees::on_exit(pid_t pid, int status) {
  const auto receiver = receivers_.extract(pid);
  if (!receiver) return;
  const std::uint64_t id = receiver.mapped().id;
  const auto text = read_all(receiver.mapped().report.get(), kMaxReport);
  v1::TreeReceived report;
  if (WIFSIGNALED(status)) {
    return fail(id, "the receiver was killed by signal " + std::to_string(WTERMSIG(status)) +
                        ", possibly because memory ran out");
  }
  if (WEXITSTATUS(status) != 0 || !text || !report.ParseFromString(*text)) {
    return fail(id, "the receiver ended without a report");
  }
  report.set_id(id);
  report_(report);
}

void IncomingTrees::cancel_all() {
  for (const auto& [pid, receiver] : receivers_) ::kill(pid, SIGKILL);
  receivers_.clear();
}

void IncomingTrees::fail(std::uint64_t id, std::string why) {
  v1::TreeReceived report;
  report.set_id(id);
  report.set_failure(std::move(why));
  report_(report);
}

}  // namespace agbox::guest
