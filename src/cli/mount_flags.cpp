// SPDX-License-Identifier: Apache-2.0
#include "cli/mount_flags.h"

#include <filesystem>
#include <system_error>

namespace agbox::cli {
namespace {

std::vector<std::string> between_colons(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = text.find(':'); end != std::string::npos; end = text.find(':', begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

v1::MountSpec mount_spec(const std::string& source, const std::string& target, bool is_writable) {
  v1::MountSpec mount;
  mount.set_source(source);
  mount.set_target(target);
  mount.set_writable(is_writable);
  return mount;
}

CLI::Option* add_repeatable(CLI::App& command, const std::string& name, const std::string& type,
                            const std::string& description) {
  // Raw results: CLI11's conversion to a list would treat "{}" as empty.
  CLI::Option* option =
      command.add_option(name, [](const CLI::results_t&) { return true; }, description);
  return option->take_all()->type_name(type);
}

}  // namespace

std::expected<v1::MountSpec, std::string> parse_mount_flag(const std::string& text) {
  const std::string flag = "--mount \"" + text + "\": ";
  const auto parts = between_colons(text);
  if (parts.size() < 2 || parts.size() > 3) {
    return std::unexpected(flag + "must be host:container or host:container:writable");
  }
  if (parts[0].empty() || parts[1].empty()) {
    return std::unexpected(flag + "source and target must be non-empty");
  }
  if (parts.size() == 3 && parts[2] != "writable") {
    return std::unexpected(flag + "only the literal suffix \":writable\" is supported (got \"" +
                           parts[2] + "\"); omit the suffix for read-only");
  }
  return mount_spec(parts[0], parts[1], parts.size() == 3);
}

std::expected<v1::MountSpec, std::string> parse_volume_flag(const std::string& text,
                                                            const std::string& directory) {
  const std::string flag = "--volume \"" + text + "\": ";
  const auto parts = between_colons(text);
  if (parts.size() < 2 || parts.size() > 3) {
    return std::unexpected(flag + "must be host:container or host:container:ro");
  }
  std::string source = parts[0];
  if (source.empty() || parts[1].empty()) {
    return std::unexpected(flag + "source and target must be non-empty");
  }
  if (parts.size() == 3 && parts[2] != "ro" && parts[2] != "rw") {
    return std::unexpected(flag + "only the suffixes \":ro\" and \":rw\" are supported (got \"" +
                           parts[2] + "\")");
  }
  if (source[0] == '.') {
    source = (std::filesystem::path(directory) / source / ".").lexically_normal().parent_path();
  } else if (source[0] != '/' && source[0] != '~') {
    return std::unexpected(flag + "named volumes are not supported; for a directory write ./" +
                           source);
  }
  return mount_spec(source, parts[1], parts.size() == 2 || parts[2] == "rw");
}

MountFlags::MountFlags(CLI::App& command)
    : mounts_(add_repeatable(command, "--mount", "HOST:CONTAINER[:writable]",
                             "Mount a file or directory of the host, read-only unless it ends in "
                             ":writable (repeatable)")),
      volumes_(add_repeatable(command, "-v,--volume", "HOST:CONTAINER[:ro]",
                              "The same as docker run -v: writable unless it ends in :ro "
                              "(repeatable)")) {}

std::expected<std::vector<v1::MountSpec>, std::string> MountFlags::values() const {
  std::vector<v1::MountSpec> mounts;
  for (const std::string& text : mounts_->results()) {
    auto mount = parse_mount_flag(text);
    if (!mount) return std::unexpected(mount.error());
    mounts.push_back(std::move(*mount));
  }
  std::error_code problem;
  const std::string directory = std::filesystem::current_path(problem).string();
  for (const std::string& text : volumes_->results()) {
    if (problem) {
      return std::unexpected("--volume \"" + text +
                             "\": the current directory is not known: " + problem.message());
    }
    auto mount = parse_volume_flag(text, directory);
    if (!mount) return std::unexpected(mount.error());
    mounts.push_back(std::move(*mount));
  }
  return mounts;
}

}  // namespace agbox::cli
