// SPDX-License-Identifier: Apache-2.0
#include "place/local/local_place.h"

#include <utility>

#include "async/run_blocking.h"
#include "execlog/exec_logs.h"
#include "guestlink/guest_program.h"
#include "guestlink/link_directory.h"
#include "guestlink/sha256.h"
#include "ingress/host_ports.h"
#include "place/local/accepted_sources.h"
#include "place/local/doctor/local_diagnosis.h"
#include "place/local/file_watch.h"
#include "place/local/host_resolvers.h"

namespace agbox {

using guestlink::LinkDirectory;

namespace {

// What was refused within this time is reported.
constexpr std::chrono::seconds kLately{10};
constexpr std::chrono::seconds kBetweenSearches{5};
// They keep a disk busy. One that takes long lets the next one begin.
constexpr int kConcurrentCopies = 4;
// Each has a thread.
constexpr int kHeldCopyThreads = 2;
constexpr int kMostCopies = 64;

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
      shared_{
          .executor = executor,
          .blocking = std::move(blocking),
          .isolation = isolation,
          .instance_id = options_.instance_id,
          // Per instance: another daemon of the same user, or this one with another store, may
          // have the same state root. Not its ID: mounts of a container are public.
          .link_root = options_.state_root / "links" /
                       guestlink::sha256_of(options_.instance_id).substr(0, 16),
          .guest_limits = options_.guest_limits,
          .forbidden_sources = std::make_shared<const ForbiddenSources>(options_.forbidden_sources),
          .log = std::move(log),
          .spare_files = SpareFiles(options_.output_root, options_.instance_id),
          .source_calls = SourceCalls(executor, options_.source_limit),
          .copies = Semaphore(executor, kConcurrentCopies),
          .copy_calls = DiskCalls(executor, kHeldCopyThreads, kMostCopies),
          .conversations = TaskGroup(executor)} {}

void LocalPlace::describe(store::v1::CreatedWith& created_with) const {
  created_with.set_guest_program(options_.guest_program.string());
  created_with.set_link_root(shared_.link_root.string());
}

asio::awaitable<Result<std::unique_ptr<MountPins>>> LocalPlace::resolve_mounts(
    v1::CreateSpec& spec, store::v1::CreatedWith& created_with, std::string engine_directory) {
  AGBOX_ON_ITS_THREAD(shared_.thread);
  created_with.clear_gpu_gids();
  SourceSearch search{.spec = spec,
                      .created_with = created_with,
                      .engine_directory = std::move(engine_directory),
                      .home = options_.home,
                      .tool_sockets = options_.tool_sockets,
                      .devices = options_.devices,
                      .forbidden = shared_.forbidden_sources};
  if (!search.is_needed()) co_return nullptr;
  auto names = search.names();
  AGBOX_CO_TRY(accepted,
               co_await shared_.source_calls.run(
                   std::move(names), [search = std::move(search)](InspectedNow& inspected) mutable {
                     return accept_sources(std::move(search), inspected);
                   }));
  log_tools(accepted.tools);
  spec = std::move(accepted.spec);
  created_with = std::move(accepted.created_with);
  co_return std::make_unique<LocalMountPins>(std::move(accepted.pins));
}

void LocalPlace::log_tools(const ResolvedTools& tools) const {
  for (const FoundResource& found : tools.found) {
    if (found.unsearched.empty()) continue;
    shared_.log.warn(
        "mounting a builtin tool whose symbolic links were not all inspected",
        {{"mount", std::string(found.requested.resource->id)}, {"reason", found.unsearched}});
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
  return std::make_unique<LocalSandboxPlace>(shared_, sandbox_id, /*companion=*/"", listener);
}

std::unique_ptr<SandboxPlace> LocalPlace::open_companion(const std::string& sandbox_id,
                                                         const std::string& companion,
                                                         GuestListener& listener) {
  return std::make_unique<LocalSandboxPlace>(shared_, sandbox_id, companion, listener);
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
