// SPDX-License-Identifier: Apache-2.0
#include "guest/transfer.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

#include "base/file_io.h"
#include "base/tar/live_tree_packer.h"
#include "base/tar/target_unpacker.h"
#include "guest/privilege.h"
#include "guestwire/place.h"

namespace agbox::guest {
namespace {

constexpr std::string_view kContentOnly = "content";
constexpr std::string_view kWithRoot = "root";

std::expected<std::size_t, int> read_input(std::span<char> buffer) {
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return std::unexpected(errno);
  }
}

// A tar may have any number of zeros after its end, and the sender must not take our end for a
// failure.
void drain_input() {
  std::array<char, 65536> rest;
  while (read_input(rest).value_or(0) > 0) {
  }
}

void fill(v1::FilesDone& report, const Error& error) {
  std::string message = error.message();
  if (error.reason() == reason::kPathAccessDenied && ::geteuid() != 0) {
    message += "; if the sandbox's root has access, copy as root (as_root, agbox cp --as-root)";
  }
  report.set_failure(std::move(message));
  report.set_reason(std::string(error.reason().name));
}

int send_report(const v1::FilesDone& report) {
  return write_all(STDERR_FILENO, report.SerializeAsString()) == 0 ? 0 : 1;
}

}  // namespace

std::vector<std::string> put_command(const v1::PutFiles& order) {
  return {guestwire::kProgramInside, "put", std::string(order.content() ? kContentOnly : kWithRoot),
          order.target()};
}

std::vector<std::string> get_command(const v1::GetFiles& order) {
  return {guestwire::kProgramInside, "get", order.path()};
}

int put(char** arguments) {
  make_undumpable();
  if (!arguments[0] || !arguments[1]) return 2;
  ::umask(022);
  const auto placement =
      arguments[0] == kContentOnly ? TreePlacement::Content : TreePlacement::Root;
  v1::FilesDone report;
  const auto unpacked =
      unpack_at({.path = arguments[1], .placement = placement}, TreeLimits{}, read_input);
  if (unpacked) {
    drain_input();
    report.set_entries(unpacked->entries);
    report.set_bytes(unpacked->bytes);
  } else {
    fill(report, unpacked.error());
  }
  return send_report(report);
}

int get(char** arguments) {
  make_undumpable();
  if (!arguments[0]) return 2;
  ::signal(SIGPIPE, SIG_IGN);
  const auto sink = [](std::string_view bytes) -> Result<> {
    if (const int problem = write_all(STDOUT_FILENO, bytes)) {
      return std::unexpected(errno_error("writing the stream", problem));
    }
    return {};
  };
  v1::FilesDone report;
  const auto packed = pack_live_tree(arguments[0], TreeLimits{}, sink);
  if (packed) {
    report.set_entries(packed->counts.entries);
    report.set_bytes(packed->counts.bytes);
    report.set_notes(packed->notes.count);
    report.set_first_note(packed->notes.first);
  } else {
    fill(report, packed.error());
  }
  return send_report(report);
}

}  // namespace agbox::guest
