// SPDX-License-Identifier: Apache-2.0
// The flags of all commands that create a sandbox, and the request that they stand for.
#pragma once

#include <agbox/v1/service.pb.h>

#include <CLI/CLI.hpp>
#include <expected>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/key_value_flag.h"
#include "cli/mount_flags.h"
#include "cli/port_flag.h"

namespace agbox::cli {

// Why the command line was rejected, and the exit code.
struct CreateRefusal {
  ExitCode code;
  std::string message;
};

class CreateFlags {
 public:
  enum class Image {
    Flag,      // --image, or the default image
    Argument,  // as in docker run
    Override,  // --image, which replaces what else decides
  };

  explicit CreateFlags(CLI::App& command, Image image = Image::Flag);

  // `command` is the main process of the sandbox; none by default.
  std::expected<v1::CreateSandboxRequest, CreateRefusal> request(
      const std::vector<std::string>& command) const;
  bool has_sandbox_id() const { return !sandbox_id_.empty(); }

 private:
  Image image_use_;
  KeyValueFlag labels_;
  KeyValueFlag envs_;
  MountFlags mounts_;
  PortFlag ports_;
  CLI::Option* copies_ = nullptr;
  CLI::Option* builtin_tools_ = nullptr;
  std::string image_;
  std::string sandbox_id_;
  std::string idle_ttl_;
  std::string cpu_limit_;
  std::string memory_limit_;
  std::string disk_limit_;
  std::string gpus_;
  std::string yaml_file_;
  bool bypass_entrypoint_ = false;
  CLI::Option* image_flag_ = nullptr;
  CLI::Option* idle_ttl_flag_ = nullptr;
  CLI::Option* yaml_file_flag_ = nullptr;
};

}  // namespace agbox::cli
