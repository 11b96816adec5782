// SPDX-License-Identifier: Apache-2.0
#include "guest/file_transfers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/file_io.h"
#include "guest/child.h"
#include "guest/transfer.h"

namespace agbox::guest {
namespace {

// The daemon allows fewer; this only bounds our processes.
constexpr std::size_t kMaxTransfers = 64;
// Of a report, which has two paths in it. Less than the pipe takes at once.
constexpr std::size_t kMaxTransferReport = 16384;
constexpr const char* kNoDescriptor = "too many open files in the guest";

}  // namespace

void FileTransfers::put(const v1::PutFiles& order, UniqueFd stream, const Identity& user,
                        int null) {
  if (!stream) return fail(order.id(), kNoDescriptor);
  start(order.id(),
        {.arguments = put_command(order),
         .in = stream.get(),
         .out = null,
         .as_root = order.as_root()},
        user);
}

void FileTransfers::get(const v1::GetFiles& order, UniqueFd stream, const Identity& user,
                        int null) {
  if (!stream) return fail(order.id(), kNoDescriptor);
  start(order.id(),
        {.arguments = get_command(order),
         .in = null,
         .out = stream.get(),
         .as_root = order.as_root()},
        user);
}

void FileTransfers::start(std::uint64_t id, Program program, const Identity& user) {
  if (transfers_.size() >= kMaxTransfers) return fail(id, "too many concurrent copies");
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(id, std::string("cannot create a pipe: ") + std::strerror(errno));
  }
  UniqueFd reading(ends[0]);
  const UniqueFd writing(ends[1]);
  // Another process of the user may have opened the writing end, through /proc, before the new
  // program had hidden it. We must not wait for that process.
  ::fcntl(reading.get(), F_SETFL, O_NONBLOCK);
  const auto started = start_child({.arguments = std::move(program.arguments),
                                    .environment = {},
                                    .identity = program.as_root ? Identity{} : user,
                                    .in = program.in,
                                    .out = program.out,
                                    .err = writing.get()});
  if (!started) return fail(id, started.error().reason);
  transfers_.emplace(*started, Transfer{.id = id, .report = std::move(reading)});
}

void FileTransfers::on_exit(pid_t pid, int status) {
  const auto transfer = transfers_.extract(pid);
  if (!transfer) return;
  const std::uint64_t id = transfer.mapped().id;
  const auto text = read_all(transfer.mapped().report.get(), kMaxTransferReport);
  if (WIFSIGNALED(status)) {
    return fail(id, "the process that copied was killed by signal " +
                        std::to_string(WTERMSIG(status)) +
                        ", by the sandbox or because its memory ran out");
  }
  v1::FilesDone report;
  if (WEXITSTATUS(status) != 0 || !text || !report.ParseFromString(*text)) {
    return fail(id, "the process that copied ended without a report");
  }
  report.set_id(id);
  report_(report);
}

void FileTransfers::cancel(std::uint64_t id) {
  for (const auto& [pid, transfer] : transfers_) {
    if (transfer.id == id) ::kill(pid, SIGKILL);
  }
}

void FileTransfers::cancel_all() {
  for (const auto& [pid, transfer] : transfers_) ::kill(pid, SIGKILL);
  transfers_.clear();
}

void FileTransfers::fail(std::uint64_t id, std::string why) {
  v1::FilesDone report;
  report.set_id(id);
  report.set_failure(std::move(why));
  report_(report);
}

}  // namespace agbox::guest
