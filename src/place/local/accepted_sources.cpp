// SPDX-License-Identifier: Apache-2.0
#include "place/local/accepted_sources.h"

#include <iterator>
#include <utility>

#include "ingress/gpu_groups.h"
#include "ingress/mount_points.h"
#include "model/spec/builtin_tools.h"
#include "model/spec/tool_targets.h"

namespace agbox {
namespace {

store::v1::MountSource kept_source(const PinnedSource& source, const std::string& boot_id) {
  store::v1::MountSource kept;
  kept.set_device(source.identity.device);
  kept.set_inode(source.identity.inode);
  kept.set_boot_id(boot_id);
  kept.set_birth_time(source.birth_time);
  return kept;
}

std::vector<SourceRequest> requests_of(const v1::CreateSpec& spec) {
  std::vector<SourceRequest> requests;
  for (const v1::MountSpec& mount : spec.mounts()) {
    requests.push_back({.path = mount.source(), .is_writable = mount.writable()});
  }
  for (const v1::CopySpec& copy : spec.copies()) {
    requests.push_back({.path = copy.source(), .use = SourceUse::Copy});
  }
  return requests;
}

// `sources` begins with those of the mounts.
std::vector<PlacedMount> placed_mounts(const v1::CreateSpec& spec,
                                       const std::vector<PinnedSource>& sources,
                                       const ResolvedTools& tools) {
  std::vector<PlacedMount> placed;
  for (const v1::MountSpec& mount : spec.mounts()) {
    placed.push_back({.source = &sources.at(placed.size()),
                      .target = mount.target(),
                      .is_writable = mount.writable()});
  }
  for (const FoundResource& tool : tools.found) {
    if (tool.is_shadow_copied) continue;
    placed.push_back({.source = &tool.source,
                      .target = std::string(tool.requested.resource->target),
                      .is_writable = tool.requested.resource->is_writable});
  }
  return placed;
}

// Records what the tools show.
void keep_tools(const ResolvedTools& tools, const std::string& boot_id,
                store::v1::CreatedWith& created_with) {
  created_with.clear_tools();
  for (const FoundResource& found : tools.found) {
    const ToolResource& resource = *found.requested.resource;
    store::v1::ToolSource& kept = *created_with.add_tools();
    *kept.mutable_found() = kept_source(found.source, boot_id);
    v1::BuiltinResource& shown = *kept.mutable_resource();
    shown.set_tool(std::string(found.requested.tool));
    shown.set_id(std::string(resource.id));
    shown.set_source(found.source.path);
    shown.set_target(std::string(resource.target));
    shown.set_writable(resource.is_writable);
    shown.set_socket(resource.kind == ToolResource::Kind::Socket);
    shown.set_shadow_copy(found.is_shadow_copied);
  }
}

// Returns those of the mounts.
std::vector<PinnedSource> keep_sources(ResolvedSources resolved, v1::CreateSpec& spec,
                                       store::v1::CreatedWith& created_with) {
  auto source = resolved.sources.begin();
  const auto keep = [&](std::string* path, store::v1::MountSource& kept) {
    *path = source->path;
    kept = kept_source(*source, resolved.boot_id);
    ++source;
  };
  created_with.clear_mounts();
  for (v1::MountSpec& mount : *spec.mutable_mounts()) {
    keep(mount.mutable_source(), *created_with.add_mounts());
  }
  created_with.clear_copies();
  for (v1::CopySpec& copy : *spec.mutable_copies()) {
    keep(copy.mutable_source(), *created_with.add_copies());
  }
  // A copy reads its source once, and compares it then.
  resolved.sources.erase(resolved.sources.begin() + spec.mounts_size(), resolved.sources.end());
  return std::move(resolved.sources);
}

}  // namespace

bool SourceSearch::is_needed() const {
  return !spec.gpus().empty() || !names().empty();
}

std::vector<std::string> SourceSearch::names() const {
  std::vector<std::string> names;
  for (const SourceRequest& request : requests_of(spec)) names.push_back(name_of(request));
  for (const RequestedResource& one : requested_resources(spec)) names.push_back(name_of(one));
  return names;
}

Result<AcceptedSources> accept_sources(SourceSearch search, InspectedNow& inspected) {
  AcceptedSources accepted{.spec = std::move(search.spec),
                           .created_with = std::move(search.created_with),
                           .pins = {},
                           .tools = {}};
  v1::CreateSpec& spec = accepted.spec;
  store::v1::CreatedWith& created_with = accepted.created_with;
  if (!spec.gpus().empty()) {
    AGBOX_TRY(groups, gpu_groups(search.devices));
    created_with.mutable_gpu_gids()->Assign(groups.begin(), groups.end());
  }
  SourceRules rules{.home = std::move(search.home),
                    .user = {.uid = created_with.host_uid(), .gid = created_with.host_gid()},
                    .forbidden = *search.forbidden,
                    .engine_files = {},
                    .inspected = &inspected};
  if (!search.engine_directory.empty()) rules.engine_files.push_back(search.engine_directory);
  AGBOX_TRY(resolved, resolve_mount_sources(requests_of(spec), rules));
  AGBOX_TRY(tools, resolve_tools(requested_resources(spec), search.tool_sockets, rules));
  keep_tools(tools, resolved.boot_id, created_with);
  created_with.clear_warnings();
  for (std::string& warning : tool_warnings(spec, tools)) {
    created_with.add_warnings(std::move(warning));
  }
  std::vector<PinnedSource> mounts = keep_sources(std::move(resolved), spec, created_with);
  AGBOX_TRY_VOID(check_tool_targets(spec, created_with));
  AGBOX_TRY_VOID(check_mount_points(placed_mounts(spec, mounts, tools)));
  for (FoundResource& tool : tools.found) {
    if (!tool.is_shadow_copied) accepted.pins.push_back(std::move(tool.source));
  }
  std::ranges::move(mounts, std::back_inserter(accepted.pins));
  accepted.tools = std::move(tools);
  return accepted;
}

}  // namespace agbox
