// SPDX-License-Identifier: Apache-2.0
// The repeatable flags that mount files of the host: --mount, and -v as in docker run.
#pragma once

#include <CLI/CLI.hpp>
#include <expected>
#include <string>
#include <vector>

#include "agbox/v1/spec.pb.h"

namespace agbox::cli {

class MountFlags {
 public:
  explicit MountFlags(CLI::App& command);

  // Those of --mount first. The error is the message of the usage error.
  std::expected<std::vector<v1::MountSpec>, std::string> values() const;

 private:
  CLI::Option* mounts_;
  CLI::Option* volumes_;
};

// HOST:CONTAINER[:writable]
std::expected<v1::MountSpec, std::string> parse_mount_flag(const std::string& text);
// HOST:CONTAINER[:ro]; writable unless ro. A relative path begins with a dot and is one of
// `directory`.
std::expected<v1::MountSpec, std::string> parse_volume_flag(const std::string& text,
                                                            const std::string& directory);

}  // namespace agbox::cli
