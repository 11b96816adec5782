// SPDX-License-Identifier: Apache-2.0
#include "guest/receive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <expected>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/file_io.h"
#include "base/unique_fd.h"
#include "guest/privilege.h"
#include "guest/tree_unpacker.h"
#include "guestwire/place.h"

namespace agbox::guest {
namespace {

constexpr std::string_view kFile = "file";
constexpr std::string_view kTree = "tree";
constexpr std::string_view kOutsideMounts = "outside-mounts";
constexpr std::string_view kAnywhere = "anywhere";

std::optional<std::uint32_t> id_of(std::string_view text) {
  std::uint32_t id = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return id;
}

std::expected<std::size_t, int> read_stream(std::span<char> buffer) {
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return std::unexpected(errno);
  }
}

// The packing side may write more after the end of the archive, and must not take our end for a
// failure.
void drain_stream() {
  std::array<char, 65536> rest;
  while (read_stream(rest).value_or(0) > 0) {
  }
}

v1::TreeReceived unpack(const UnpackOrder& order) {
  v1::TreeReceived report;
  const UniqueFd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto unpacked = unpack_tree(root.get(), order, read_stream);
  if (!unpacked) {
    report.set_failure(unpacked.error().message());
    return report;
  }
  drain_stream();
  report.set_entries(unpacked->entries);
  report.set_bytes(unpacked->bytes);
  return report;
}

}  // namespace

std::vector<std::string> receive_command(const v1::ReceiveTree& order, const Identity& user) {
  return {guestwire::kProgramInside,
          "receive",
          std::to_string(user.uid),
          std::to_string(user.gid),
          std::string(order.single_file() ? kFile : kTree),
          std::string(order.outside_mounts() ? kOutsideMounts : kAnywhere),
          order.target()};
}

int receive(char** arguments) {
  make_undumpable();
  const std::optional<std::uint32_t> uid = arguments[0] ? id_of(arguments[0]) : std::nullopt;
  const std::optional<std::uint32_t> gid = uid && arguments[1] ? id_of(arguments[1]) : std::nullopt;
  if (!gid || !arguments[2] || !arguments[3] || !arguments[4]) return 2;
  ::umask(0);
  const v1::TreeReceived report = unpack({.uid = *uid,
                                          .gid = *gid,
                                          .target = arguments[4],
                                          .is_single_file = arguments[2] == kFile,
                                          .is_outside_mounts = arguments[3] == kOutsideMounts});
  return write_all(STDOUT_FILENO, report.SerializeAsString()) == 0 ? 0 : 1;
}

}  // namespace agbox::guest
