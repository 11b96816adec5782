// SPDX-License-Identifier: Apache-2.0
// The tools of the host that a sandbox can be given by name, and what each of them needs of the
// host.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agbox/v1/spec.pb.h"
#include "base/result.h"

namespace agbox {

// One file, directory or socket of the host. Several tools may need the same one.
struct ToolResource {
  enum class Kind {
    Directory,
    Cache,  // a directory too; always shared with the host, which is its purpose
    File,
    Socket,
  };

  std::string_view id;
  Kind kind;
  std::string_view source;  // below the home directory of the daemon's user; empty for a socket
  std::string_view target;
  bool is_writable = true;
  bool is_required = false;     // otherwise it is left out if the host does not have it
  std::string_view variable{};  // the location, for programs: NAME=VALUE
};

struct BuiltinTool {
  std::string_view name;
  std::span<const ToolResource> resources;
};

std::span<const BuiltinTool> builtin_tools();
// For people: "claude, codex, ...".
std::string builtin_tool_names();

// nullptr if there is none, such as one of another version of the daemon.
const ToolResource* find_tool_resource(std::string_view id);

// Each is known, and given once.
Result<> check_builtin_tools(const v1::CreateSpec& spec);

struct RequestedResource {
  std::string_view tool;  // the first one that needs it
  const ToolResource* resource;
};

// What the spec's tools need, each resource once, in the order of the request.
std::vector<RequestedResource> requested_resources(const v1::CreateSpec& spec);

}  // namespace agbox
