// SPDX-License-Identifier: Apache-2.0
// One side of `agbox cp`: a path of this machine, a path of a sandbox, or a tar stream.
#pragma once

#include <expected>
#include <string>
#include <variant>

namespace agbox::cli {

struct LocalPath {
  std::string path;
};
struct SandboxPath {
  std::string sandbox_id;
  std::string path;
};
struct TarStream {};  // "-": stdin or stdout

using CopyLocation = std::variant<LocalPath, SandboxPath, TarStream>;

// "SANDBOX:PATH", or a path of this machine. As in `docker cp`, a path that begins with "/" or "."
// or has a slash before the colon is one of this machine. The error is a message for people.
std::expected<CopyLocation, std::string> parse_copy_location(const std::string& text);

}  // namespace agbox::cli
