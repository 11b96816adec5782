// SPDX-License-Identifier: Apache-2.0
#include "place/local/local_place.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "async/run_blocking.h"
#include "execlog/exec_logs.h"
#include "guestlink/guest_program.h"
#include "guestlink/link_directory.h"
#include "guestlink/sha256.h"
#include "ingress/gpu_groups.h"
#include "ingress/host_ports.h"
#include "ingress/mount_points.h"
#include "model/spec/tool_targets.h"
#include "place/local/doctor/local_diagnosis.h"
#include "place/local/file_watch.h"
#include "place/local/host_resolvers.h"

namespace agbox {

using guestlink::LinkDirectory;

namespace {

// What was refused within this time is reported.
constexpr std::chrono::seconds kLately{10};
constexpr std::chrono::seconds kBetweenSearches{5};
// Each has a thread and keeps a disk busy.
constexpr int kConcurrentCopies = 2;

store::v1::MountSource kept_source(const PinnedSource& source, const std::string& boot_id) {
  store::v1::MountSource kept;
  kept.set_device(source.identity.device);
  kept.set_inode(source.identity.inode);
  kept.set_boot_id(boot_id);
  return kept;
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

}  // namespace

Result<std::unique_ptr<LocalPlace>> LocalPlace::create(const asio::any_io_executor& executor,
                                                       asio::any_io_executor blocking,
                                                       HostIsolation& isolation,
                                                       LocalPlaceOptions options, Logger log) {
  AGBOX_TRY(copy, guestlink::install_guest_program(options.guest_program, options.state_root));
  options.guest_program = copy.path;
  return std::unique_ptr<LocalPlace>(
      new LocalPlace(executor, std::move(blocking), isolation, std::move(options), std::move(log)));
}

LocalPlace::LocalPlace(const asio::any_io_executor& executor, asio::any_io_executor blocking,
                       HostIsolation& isolation, LocalPlaceOptions options, Logger log)
    : options_(std::move(options)),
      forbidden_sources_(options_.forbidden_sources),
      shared_{.executor = executor,
              .blocking = std::move(blocking),
              .isolation = isolation,
              .instance_id = options_.instance_id,
              // Per instance: another daemon of the same user, or this one with another store, may
              // have the same state root. Not its ID: mounts of a container are public.
              .link_root = options_.state_root / "links" /
                           guestlink::sha256_of(options_.instance_id).substr(0, 16),
              .guest_limits = options_.guest_limits,
              .forbidden_sources = forbidden_sources_,
              .log = std::move(log),
              .spare_files = SpareFiles(options_.output_root, options_.instance_id),
              .copies = Semaphore(executor, kConcurrentCopies),
              .conversations = TaskGroup(executor)} {}

void LocalPlace::describe(store::v1::CreatedWith& created_with) const {
  created_with.set_guest_program(options_.guest_program.string());
  created_with.set_link_root(shared_.link_root.string());
}

asio::awaitable<Result<std::unique_ptr<MountPins>>> LocalPlace::resolve_mounts(
    v1::CreateSpec& spec, store::v1::CreatedWith& created_with, std::string engine_directory) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  created_with.clear_gpu_gids();
  if (!spec.gpus().empty()) {
    AGBOX_CO_TRY(groups, co_await run_blocking(shared_.mount_files->executor(),
                                               [&] { return gpu_groups(options_.devices); }));
    created_with.mutable_gpu_gids()->Assign(groups.begin(), groups.end());
  }
  const std::vector<RequestedResource> resources = requested_resources(spec);
  if (spec.mounts().empty() && spec.copies().empty() && resources.empty()) co_return nullptr;
  SourceRules rules{.home = options_.home,
                    .user = {.uid = created_with.host_uid(), .gid = created_with.host_gid()},
                    .forbidden = forbidden_sources_,
                    .engine_files = {}};
  if (!engine_directory.empty()) rules.engine_files.emplace_back(std::move(engine_directory));
  std::vector<SourceRequest> requests;
  for (const v1::MountSpec& mount : spec.mounts()) {
    requests.push_back({.path = mount.source(), .is_writable = mount.writable()});
  }
  for (const v1::CopySpec& copy : spec.copies()) {
    requests.push_back({.path = copy.source(), .use = SourceUse::Copy});
  }
  AGBOX_CO_TRY(pinned, co_await run_blocking(shared_.mount_files->executor(), [&] {
                 return resolve_mount_sources(requests, rules);
               }));
  AGBOX_CO_TRY(tools, co_await run_blocking(shared_.mount_files->executor(), [&] {
                 return resolve_tools(resources, options_.tool_sockets, rules);
               }));
  created_with.clear_mounts();
  created_with.clear_copies();
  keep_tools(tools, pinned.boot_id, created_with);
  created_with.clear_warnings();
  for (std::string& warning : tool_warnings(spec, tools)) {
    created_with.add_warnings(std::move(warning));
  }
  auto source = pinned.sources.begin();
  const auto keep = [&](std::string* path, store::v1::MountSource& kept) {
    *path = source->path;
    kept = kept_source(*source, pinned.boot_id);
    ++source;
  };
  for (v1::MountSpec& mount : *spec.mutable_mounts()) {
    keep(mount.mutable_source(), *created_with.add_mounts());
  }
  const auto copies = source;
  for (v1::CopySpec& copy : *spec.mutable_copies()) {
    keep(copy.mutable_source(), *created_with.add_copies());
  }
  AGBOX_CO_TRY_VOID(check_tool_targets(spec, created_with));
  const std::vector<PlacedMount> placed = placed_mounts(spec, pinned.sources, tools);
  AGBOX_CO_TRY_VOID(co_await run_blocking(shared_.mount_files->executor(),
                                          [&] { return check_mount_points(placed); }));
  // A copy reads its source once, and compares it then; only mounts are pinned.
  std::vector<PinnedSource> pins;
  for (FoundResource& tool : tools.found) {
    if (!tool.is_shadow_copied) pins.push_back(std::move(tool.source));
  }
  std::move(pinned.sources.begin(), copies, std::back_inserter(pins));
  co_return std::make_unique<LocalMountPins>(std::move(pins));
}

void LocalPlace::keep_tools(const ResolvedTools& tools, const std::string& boot_id,
                            store::v1::CreatedWith& created_with) const {
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
    if (!found.unsearched.empty()) {
      shared_.log.warn("mounting a builtin tool whose symbolic links were not all inspected",
                       {{"mount", std::string(resource.id)}, {"reason", found.unsearched}});
    }
  }
  for (const MissingResource& missing : tools.missing) {
    const ToolResource& resource = *missing.requested.resource;
    const std::string what = resource.kind == ToolResource::Kind::Socket ? "socket" : "host path";
    shared_.log.info("skipping optional builtin mount: " + what + " not available",
                     {{"mount", std::string(resource.id)}, {"error", missing.why}});
  }
}

asio::awaitable<Result<std::optional<TakenPort>>> LocalPlace::find_taken_port(PortMappings ports) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  return run_blocking(shared_.blocking,
                      [ports = std::move(ports)]() -> Result<std::optional<TakenPort>> {
                        return agbox::find_taken_port(ports);
                      });
}

std::unique_ptr<SandboxPlace> LocalPlace::open(const std::string& sandbox_id,
                                               GuestListener& listener) {
  return std::make_unique<LocalSandboxPlace>(shared_, sandbox_id, listener);
}

asio::awaitable<void> LocalPlace::disconnect() {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  for (LocalSandboxPlace* sandbox : shared_.sandboxes) sandbox->rest();
  co_await shared_.conversations.join();
}

// --- isolation ---

asio::awaitable<Result<>> LocalPlace::start_isolation(std::vector<Ipv4Address> resolvers,
                                                      std::function<void()> on_change) {
  return shared_.isolation.start(std::move(resolvers), std::move(on_change));
}

asio::awaitable<Result<>> LocalPlace::set_resolvers(std::vector<Ipv4Address> resolvers) {
  return shared_.isolation.set_resolvers(std::move(resolvers));
}

asio::awaitable<Result<>> LocalPlace::stop_isolation(bool remove_rules) {
  return shared_.isolation.stop(remove_rules);
}

IsolationHealth LocalPlace::isolation_health() const {
  return shared_.isolation.health();
}

asio::awaitable<void> LocalPlace::follow_resolvers(
    std::function<void(const std::vector<Ipv4Address>&)> on_change) {
  const auto& files = options_.resolver_files;
  if (files.empty()) co_return;
  co_await watch_files(files, [&files, &on_change] { on_change(host_resolvers(files)); });
}

// --- limits of the user ---

std::vector<SandboxGuest> LocalPlace::guests() const {
  std::vector<SandboxGuest> guests;
  for (const LocalSandboxPlace* sandbox : shared_.sandboxes) guests.push_back(sandbox->guest());
  return guests;
}

std::string LocalPlace::limits_shortcoming() {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  const std::vector<KernelBudget> refused = refused_within(kLately);
  if (refused.empty()) {
    holders_.clear();
    return {};
  }
  if (!is_searching_ && std::chrono::steady_clock::now() >= next_search_) {
    is_searching_ = true;
    shared_.conversations.spawn("budget holders", search_holders(refused));
  }
  std::string sentences;
  for (const KernelBudget budget : refused) {
    sentences += (sentences.empty() ? "" : "; ") + describe_exhausted(budget, holders_);
  }
  return sentences;
}

asio::awaitable<void> LocalPlace::search_holders(std::vector<KernelBudget> budgets) {
  holders_ = co_await run_blocking(shared_.blocking,
                                   [of = guests(), &budgets] { return find_holders(of, budgets); });
  is_searching_ = false;
  next_search_ = std::chrono::steady_clock::now() + kBetweenSearches;
}

// --- upkeep ---

asio::awaitable<Result<std::vector<std::string>>> LocalPlace::remove_unclaimed(
    std::function<std::set<std::string>()> claimed_sandbox_ids) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  AGBOX_CO_TRY(found, co_await run_blocking(shared_.blocking, [root = shared_.link_root] {
                 return LinkDirectory::list(root);
               }));
  std::set<std::filesystem::path> unclaimed(found.begin(), found.end());
  for (const std::string& sandbox_id : claimed_sandbox_ids()) {
    unclaimed.erase(LinkDirectory::path_of(shared_.link_root, sandbox_id));
  }
  shared_.being_removed = unclaimed;
  auto removed = co_await run_blocking(shared_.blocking, [&unclaimed]() -> Result<> {
    for (const std::filesystem::path& path : unclaimed) AGBOX_TRY_VOID(LinkDirectory::remove(path));
    return {};
  });
  shared_.being_removed.clear();
  if (!removed) co_return std::unexpected(std::move(removed.error()));
  co_return std::vector<std::string>(unclaimed.begin(), unclaimed.end());
}

asio::awaitable<Result<std::vector<std::string>>> LocalPlace::list_outputs() {
  return run_blocking(shared_.blocking,
                      [root = options_.output_root] { return find_exec_log_directories(root); });
}

asio::awaitable<Result<>> LocalPlace::remove_output(std::string sandbox_id,
                                                    store::v1::CreatedWith created_with) {
  const std::filesystem::path root = created_with.exec_output_root();
  // Unknown for a sandbox whose record could not be read.
  if (!root.is_absolute()) co_return Result<>{};
  co_return co_await remove_exec_log_directory(shared_.blocking, root / sandbox_id);
}

asio::awaitable<v1::DiagnoseResponse> LocalPlace::diagnose(PlaceDiagnosisRequest request) {
  Result<FirewallFacts> firewall;
  if (request.isolation) {
    firewall = co_await shared_.isolation.inspect();
  } else {
    firewall = std::unexpected(request.isolation.error());
  }
  co_return co_await run_local_checks({.blocking = shared_.blocking,
                                       .guest_program = options_.guest_program,
                                       .output_root = options_.output_root,
                                       .state_root = options_.state_root,
                                       .guests = guests(),
                                       .resolver_files = options_.resolver_files,
                                       .isolation_health = isolation_health(),
                                       .firewall = std::move(firewall),
                                       .request = std::move(request)});
}

}  // namespace agbox
