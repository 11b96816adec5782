// SPDX-License-Identifier: Apache-2.0
#include "control/upkeep/diagnosis.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "async/cancellation.h"
#include "async/run_blocking.h"
#include "base/file_lock.h"
#include "base/text_file.h"
#include "control/upkeep/host_resolvers.h"
#include "engine/docker/images/image_reference.h"
#include "execlog/disk_room.h"
#include "isolation/capability.h"
#include "isolation/netlink/routing.h"
#include "model/object_names.h"
#include "model/spec/maxima.h"
#include "model/spec/mount_point.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

// Of every call to the engine: a person waits.
constexpr std::chrono::seconds kEnginePatience{5};
// Of all proofs together. One that nobody answers takes seven of them, and there may be many of the
// kind: what was seen until then is worth more than an answer that nobody waits for any more.
constexpr std::chrono::seconds kProofsPatience{20};
constexpr std::size_t kMostImagesAsked = 16;
// Of those of sandboxes; the rest are not looked for.
constexpr std::size_t kMostImagesLookedFor = 64;

// Nothing where the mount that the engine means is not one that we see.
std::optional<bool> has_project_quota(const std::string& folder) {
  const auto mounts = read_text_file("/proc/self/mountinfo");
  if (!mounts) return std::nullopt;
  const auto mount = mount_point_of(folder, *mounts);
  if (!mount || mount->filesystem != "xfs") return std::nullopt;
  return std::ranges::find(mount->options, "prjquota") != mount->options.end();
}

std::optional<bool> forwards_packets() {
  const auto setting = read_text_file("/proc/sys/net/ipv4/ip_forward");
  if (!setting || setting->empty()) return std::nullopt;
  return setting->front() == '1';
}

// As the kernel's lists call this process: in a namespace of its own it may have another id there.
std::optional<pid_t> listed_process_id() {
  std::error_code problem;
  const std::string name = fs::read_symlink("/proc/self", problem).string();
  pid_t id = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), id);
  if (problem || read.ec != std::errc()) return std::nullopt;
  return id;
}

// Itself, or the folder in which it will be made.
fs::path nearest_existing(fs::path path) {
  std::error_code problem;
  while (!fs::exists(path, problem) && path.has_relative_path()) path = path.parent_path();
  return path;
}

struct StoredThing {
  std::string what;
  fs::path path;
  bool is_output = false;  // of commands
};

DiskFacts look_at_disk(const StoredThing& thing) {
  DiskFacts facts{.what = thing.what, .path = thing.path, .holds_output = thing.is_output};
  struct statvfs disk{};
  if (::statvfs(nearest_existing(thing.path).c_str(), &disk) != 0) {
    facts.problem = std::generic_category().message(errno);
    return facts;
  }
  const DiskRoom room = disk_room(disk);
  facts.left = room.left;
  facts.reserve = room.reserve;
  return facts;
}

std::optional<dev_t> device_of(const fs::path& path) {
  struct stat found{};
  if (::stat(nearest_existing(path).c_str(), &found) != 0) return std::nullopt;
  return found.st_dev;
}

std::vector<DiskFacts> look_at_disks_of(const std::vector<StoredThing>& things) {
  std::vector<DiskFacts> disks;
  std::vector<std::optional<dev_t>> devices;
  for (const StoredThing& thing : things) {
    const auto device = device_of(thing.path);
    const auto same = std::ranges::find(devices, device);
    if (device && same != devices.end()) {
      disks[static_cast<std::size_t>(same - devices.begin())].what += ", " + thing.what;
      continue;
    }
    devices.push_back(device);
    disks.push_back(look_at_disk(thing));
  }
  return disks;
}

}  // namespace

Result<std::vector<std::string>> parse_diagnose_request(const v1::DiagnoseRequest& request) {
  if (static_cast<std::size_t>(request.images_size()) > kMostImagesAsked) {
    return fail(reason::kInvalidArgument, "images: at most " + std::to_string(kMostImagesAsked) +
                                              " can be looked for, not " +
                                              std::to_string(request.images_size()));
  }
  for (const std::string& image : request.images()) {
    if (image.size() > maxima::kImageBytes) {
      return fail(reason::kInvalidArgument,
                  "images: a name has at most " + std::to_string(maxima::kImageBytes) + " bytes");
    }
    if (is_image_id(image)) continue;
    if (const auto parsed = parse_image_reference(image); !parsed) {
      return std::unexpected(parsed.error().within("images"));
    }
  }
  return std::vector<std::string>(request.images().begin(), request.images().end());
}

asio::awaitable<Result<v1::DiagnoseResponse>> Diagnosis::run(std::vector<std::string> images) {
  AGBOX_CO_TRY(turn, co_await turn_.acquire());
  DiagnosisFacts facts;
  facts.has_net_admin = has_net_admin_capability();
  facts.engine = co_await look_at_engine();
  // Waits for the rules of a daemon that has just started; before, nobody could prove anything.
  facts.firewall = co_await services_.isolation.look();
  facts.proofs = co_await prove_live_sandboxes();
  facts.forwards_packets = forwards_packets();
  facts.resolvers = look_at_resolvers();
  facts.store = look_at_store();
  facts.lock = look_at_lock();
  facts.guest_program = look_for_guest_program();
  facts.disks = co_await look_at_disks(facts.engine);
  if (facts.engine) {
    facts.pool = look_at_pool(co_await list_subnets());
    facts.images = co_await look_for_images(std::move(images));
    facts.strays = co_await look_for_strays();
  } else {  // one that does not answer need not be waited for again
    facts.pool = look_at_pool({});
    facts.images = std::unexpected(facts.engine.error());
    facts.strays = std::unexpected(facts.engine.error());
  }
  if (co_await is_cancelled()) co_return fail(reason::kCancelled, "the diagnosis was given up");
  co_return judge_host(facts);
}

asio::awaitable<Result<EngineFacts>> Diagnosis::look_at_engine() {
  const auto engine = co_await services_.engine.identify({.deadline = kEnginePatience});
  if (!engine) {
    const EngineError& error = engine.error();
    co_return fail(error.reason(), error.kind() == EngineErrorKind::Unfit
                                       ? error.message()
                                       : "the Docker Engine does not answer: " + error.message());
  }
  const Result<> fit = judge(*engine);
  co_return EngineFacts{.name = title_of(*engine),
                        .socket = options_.engine_socket,
                        .unfit = fit ? std::string() : fit.error().message(),
                        .firewall_backend = engine->firewall_backend,
                        .has_live_restore = engine->has_live_restore,
                        .storage = {.driver = engine->storage_driver,
                                    .backing_filesystem = engine->backing_filesystem,
                                    .root_folder = engine->root_folder,
                                    .has_project_quota = has_project_quota(engine->root_folder)}};
}

asio::awaitable<ProofFacts> Diagnosis::prove_live_sandboxes() {
  ProofFacts facts;
  const std::vector<std::string> live = directory_.live_sandboxes();
  facts.skipped = live.size();
  const BootTime end = services_.clock.boot_now() + kProofsPatience;
  for (const std::string& id : live) {
    if (services_.clock.boot_now() > end || co_await is_cancelled()) break;
    --facts.skipped;
    const auto attempt = co_await services_.isolation.try_to_prove(
        id, bridge_name(services_.store.instance_id(), id));
    // One that was stopped meanwhile has nothing to prove any more.
    if (attempt.outcome) {
      ++facts.proven;
    } else if (directory_.is_live(id)) {
      auto& kind = attempt.is_unknown ? facts.unasked : facts.unproven;
      kind.push_back({.sandbox_id = id, .why = attempt.outcome.error().message()});
    }
  }
  const IsolationHealth health = services_.isolation.health();
  facts.repairs = health.repairs;
  facts.last_repair = health.last_repair;
  co_return facts;
}

// None where the engine does not tell: a choice avoids the rest all the same.
asio::awaitable<std::vector<std::string>> Diagnosis::list_subnets() {
  const auto networks = co_await services_.engine.list_networks({}, {.deadline = kEnginePatience});
  std::vector<std::string> subnets;
  if (!networks) co_return subnets;
  for (const NetworkSeen& network : *networks) {
    subnets.insert(subnets.end(), network.subnets.begin(), network.subnets.end());
  }
  co_return subnets;
}

asio::awaitable<Result<std::vector<ImageFacts>>> Diagnosis::look_for_images(
    std::vector<std::string> wanted) {
  std::vector<ImageFacts> images;
  for (std::string& name : wanted) images.push_back({.name = std::move(name)});
  for (std::string& name : directory_.images()) {
    if (images.size() == kMostImagesLookedFor) break;
    const auto found = std::ranges::find(images, name, &ImageFacts::name);
    if (found == images.end()) {
      images.push_back({.name = std::move(name), .is_of_sandbox = true});
    } else {
      found->is_of_sandbox = true;
    }
  }
  for (ImageFacts& image : images) {
    const auto seen =
        co_await services_.engine.inspect_image(image.name, {.deadline = kEnginePatience});
    if (!seen && seen.error().kind() != EngineErrorKind::NotFound) {
      co_return std::unexpected<Error>(seen.error());
    }
    image.is_there = seen.has_value();
  }
  co_return images;
}

asio::awaitable<Result<std::vector<StrayContainer>>> Diagnosis::look_for_strays() {
  const ObjectOwner ours{.instance = services_.store.instance_id()};
  AGBOX_CO_TRY(listed, co_await services_.engine.list_containers(ours.labels(),
                                                                 {.deadline = kEnginePatience}));
  std::vector<StrayContainer> strays;
  for (UnknownPrimary& primary : janitor_.unknown_primaries_among(listed)) {
    strays.push_back({.container_name = std::move(primary.container_name),
                      .sandbox_id = std::move(primary.sandbox_id)});
  }
  co_return strays;
}

Result<PoolFacts> Diagnosis::look_at_pool(const std::vector<std::string>& engine_subnets) const {
  AGBOX_TRY(in_use, read_networks_in_use(kBridgePrefix));
  AGBOX_TRY(taken, services_.subnets.occupied(engine_subnets));
  return PoolFacts{
      .pool = services_.subnets.pool(), .in_use = std::move(in_use), .taken = std::move(taken)};
}

ResolverFacts Diagnosis::look_at_resolvers() const {
  ResolverFacts facts{
      .given = {services_.created_with.dns().begin(), services_.created_with.dns().end()},
      .of_host = {},
      .are_configured = options_.resolver_files.empty()};
  for (const Ipv4Address& resolver : host_resolvers(options_.resolver_files)) {
    facts.of_host.push_back(resolver.text());
  }
  return facts;
}

StoreFacts Diagnosis::look_at_store() const {
  const SpaceStatus space = services_.store.space();
  return {.path = services_.store.path(),
          .refuses_new_work = space.refuses_new_work,
          .waiting_changes = space.waiting_changes,
          .unreadable_sandboxes = directory_.unreadable_sandboxes()};
}

LockFacts Diagnosis::look_at_lock() const {
  LockFacts facts{.path = options_.lock_file, .is_held = {}};
  const auto process = listed_process_id();
  const auto locks = read_text_file("/proc/locks");
  if (options_.lock_file.empty() || !process || !locks) return facts;
  struct stat found{};
  facts.is_held = ::lstat(options_.lock_file.c_str(), &found) == 0 &&
                  holds_flock(*locks, *process, found.st_ino);
  return facts;
}

GuestProgramFacts Diagnosis::look_for_guest_program() const {
  std::error_code problem;
  const fs::path path = services_.created_with.guest_program();
  return {.path = path, .is_there = fs::is_regular_file(path, problem)};
}

asio::awaitable<std::vector<DiskFacts>> Diagnosis::look_at_disks(
    const Result<EngineFacts>& engine) {
  std::vector<StoredThing> things = {
      {.what = "output of commands",
       .path = services_.created_with.exec_output_root(),
       .is_output = true},
      {.what = "store", .path = services_.store.path()},
      {.what = "state", .path = services_.created_with.state_root()}};
  if (engine && !engine->storage.root_folder.empty()) {
    things.push_back({.what = "containers and images", .path = engine->storage.root_folder});
  }
  co_return co_await run_blocking(services_.blocking,
                                  [&things] { return look_at_disks_of(things); });
}

}  // namespace agbox
