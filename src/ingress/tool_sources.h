// SPDX-License-Identifier: Apache-2.0
// The host's side of builtin tools: what of the resources that they need exists here, and how a
// sandbox gets it. What no mount may show, no tool shows either.
//
// Every call may wait for a disk.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ingress/mount_source.h"
#include "model/spec/builtin_tools.h"

namespace agbox {

// The path of each socket that this host may have, by the ID of its resource.
using ToolSockets = std::map<std::string_view, std::filesystem::path>;

// As the environment of the daemon names them: those of its user, not of a caller.
ToolSockets tool_sockets(const std::map<std::string, std::string>& environment, uid_t user);

// "builtin tool git resource gh-auth".
std::string name_of(const RequestedResource& requested);

struct FoundResource {
  RequestedResource requested;
  PinnedSource source;
  // A link in it leads out of it. Mounted, it would lead to nothing, and a program that writes a
  // new file in its place would replace the host's link.
  bool is_shadow_copied = false;
  // What was not searched for such links, and why. It is mounted: a sandbox that may write to it
  // must not be able to make it unusable for the next one.
  std::string unsearched{};
};

struct MissingResource {
  RequestedResource requested;
  std::string why;
};

struct ResolvedTools {
  std::vector<FoundResource> found;      // in the order of the request
  std::vector<MissingResource> missing;  // which are optional
};

// Fails with the first that is required and missing, or that exists and is not possible. Below the
// home directory only one link is followed, which has to be directly in it: others may be the work
// of a sandbox. A socket is only found if it is one, and belongs to the daemon's user, and if the
// way to it is neither another user's nor a sandbox's.
Result<ResolvedTools> resolve_tools(const std::vector<RequestedResource>& requested,
                                    const ToolSockets& sockets, const SourceRules& rules);

// What the caller should know of them, one sentence each: tools that show nothing at all, and what
// was not searched. UTF-8.
std::vector<std::string> tool_warnings(const v1::CreateSpec& spec, const ResolvedTools& resolved);

}  // namespace agbox
