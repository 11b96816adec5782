// SPDX-License-Identifier: Apache-2.0
#include "control/directory.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/uuid.h"
#include "control/commit.h"
#include "control/page_token.h"
#include "control/port_check.h"
#include "model/ids.h"
#include "model/network/resolv_conf.h"
#include "model/reasons.h"
#include "model/sandbox/label_selector.h"
#include "model/spec/maxima.h"

namespace agbox {
namespace {

constexpr const char* kDeleteRequested = "delete_requested";
// The delay before retrying to remove the output of a deleted sandbox.
constexpr auto kNextPurgeAfter = std::chrono::hours(1);

// Newest first; by ID if created at the same time.
bool comes_before(const v1::SandboxHandle* left, const v1::SandboxHandle* right) {
  return PageToken::of(*left) < PageToken::of(*right);
}

bool is_ready(const SandboxActor& actor) {
  return actor.handle().state() == v1::SANDBOX_STATE_READY;
}

}  // namespace

void Directory::time_is_up(const std::string& sandbox_id) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const auto actor = find(sandbox_id);
  if (!actor || services_.is_shutting_down) return;  // the next start of the daemon finds it due
  if (!(*actor)->is_deleted()) return (*actor)->time_is_up();
  services_.tasks.spawn("purge " + sandbox_id, purge_with_logs(sandbox_id));
}

// Removes the output of its execs first: after a crash in between, the history is still due at the
// next start, and no unknown files are left.
boost::asio::awaitable<void> Directory::purge_with_logs(std::string sandbox_id) {
  // Found again after every wait: another purge may have come first.
  auto actor = find(sandbox_id);
  if (!actor) co_return;
  const auto removed = co_await services_.place.remove_output(sandbox_id, (*actor)->created_with());
  if (!removed && removed.error().reason() == reason::kCancelled) co_return;
  actor = find(sandbox_id);
  if (!actor) co_return;
  // An exec that ended or is being refused may still wait for files that do not respond.
  if (!removed || (*actor)->execs().use_files()) {
    services_.log.warn(
        "output of a deleted sandbox cannot be removed; its history is kept until it can",
        {{"sandbox_id", sandbox_id},
         {"error", removed ? "files of an exec are in use" : removed.error().message()}});
    services_.deadlines.set(sandbox_id, services_.clock.now().boot + kNextPurgeAfter);
    co_return;
  }
  // History, execs and record together; the ID stays reserved forever.
  if (!co_await commit(services_.store, {.mutations = {change::Purge{sandbox_id}}})) co_return;
  actor = find(sandbox_id);
  if (!actor) co_return;
  (*actor)->feed()->end();
  actors_.erase(sandbox_id);
  services_.log.info("sandbox history purged", {{"sandbox_id", sandbox_id}});
}

void Directory::restore(LoadedSandboxes loaded) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  services_.all_events.restore(loaded.newest_position);
  for (SandboxRecord& record : loaded.sandboxes) {
    auto spec = read_stored_spec(record.spec);
    if (spec) {
      add_restored(std::move(record), std::move(*spec));
    } else {
      const std::string id = record.sandbox_id;
      loaded.broken.push_back({.sandbox_id = id,
                               .why = "stored spec cannot be understood: " + spec.error().message(),
                               .rest = std::move(record)});
    }
  }
  for (const auto& [id, actor] : actors_) actor->recover();
  for (const BrokenSandbox& broken : loaded.broken) add_broken(broken);
}

void Directory::add_restored(SandboxRecord record, SandboxSpec spec) {
  std::string id = record.sandbox_id;
  actors_.emplace(std::move(id),
                  std::make_unique<SandboxActor>(services_, std::move(record), std::move(spec)));
}

// A broken sandbox affects no other. If its history can be continued, it fails with the reason and
// can be deleted; otherwise every call that names it returns the reason.
void Directory::add_broken(const BrokenSandbox& broken) {
  services_.log.error("stored sandbox cannot be read",
                      {{"sandbox_id", broken.sandbox_id}, {"error", broken.why}});
  if (!broken.rest) {
    unreadable_.emplace(broken.sandbox_id, broken.why);
    services_.engine.restored({.sandbox_id = broken.sandbox_id,
                               .spec = {},
                               .created_with = {},
                               .subnet = broken.subnet,
                               .containers = {}});
    return;
  }
  add_restored(*broken.rest, {});
  actors_.at(broken.sandbox_id)->recover_unreadable(broken.why);
}

SandboxClaim Directory::claim_of(const std::string& sandbox_id) const {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (unreadable_.contains(sandbox_id)) return {.kind = SandboxClaim::Kind::Everything};
  const auto found = actors_.find(sandbox_id);
  return found == actors_.end() ? SandboxClaim{} : found->second->claim();
}

std::vector<std::string> Directory::sandbox_ids() const {
  std::vector<std::string> ids;
  for (const auto& [id, actor] : actors_) ids.push_back(id);
  for (const auto& [id, why] : unreadable_) ids.push_back(id);
  return ids;
}

std::vector<std::string> Directory::live_sandboxes() const {
  std::vector<std::string> ids;
  for (const auto& [id, actor] : actors_) {
    if (is_ready(*actor)) ids.push_back(id);
  }
  return ids;
}

bool Directory::is_live(const std::string& sandbox_id) const {
  const auto actor = actors_.find(sandbox_id);
  return actor != actors_.end() && is_ready(*actor->second);
}

SandboxPlace* Directory::place_of(const std::string& sandbox_id) const {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const auto actor = actors_.find(sandbox_id);
  return actor == actors_.end() ? nullptr : &actor->second->place();
}

std::vector<std::string> Directory::images() const {
  std::set<std::string> images;
  for (const auto& [id, actor] : actors_) {
    if (!actor->is_deleted()) images.insert(actor->handle().image());
  }
  images.erase("");  // of a sandbox whose record cannot be read
  return {images.begin(), images.end()};
}

std::vector<std::string> Directory::unreadable_sandboxes() const {
  std::vector<std::string> ids;
  for (const auto& [id, why] : unreadable_) ids.push_back(id);
  return ids;
}

bool Directory::has_any() const {
  return undeleted() > 0 || !unreadable_.empty();
}

std::size_t Directory::undeleted() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      actors_, [](const auto& entry) { return !entry.second->is_deleted(); }));
}

void Directory::create(SandboxSpec spec, std::string sandbox_id, Reply<v1::SandboxHandle> reply) {
  answer(std::move(reply), create(std::move(spec), std::move(sandbox_id)));
}

void Directory::stop(const std::string& sandbox_id, Reply<void> reply) {
  answer(std::move(reply), stop(sandbox_id));
}

void Directory::resume(const std::string& sandbox_id, Reply<void> reply) {
  answer(std::move(reply), resume(sandbox_id));
}

void Directory::remove(const std::string& sandbox_id, Reply<void> reply) {
  answer(std::move(reply), remove(sandbox_id));
}

void Directory::remove_matching(const SandboxLabels& selector,
                                Reply<std::vector<std::string>> reply) {
  answer(std::move(reply), remove_matching(selector));
}

Directory::Call<v1::SandboxHandle> Directory::create(SandboxSpec spec, std::string sandbox_id) {
  if (sandbox_id.empty()) sandbox_id = random_uuid();
  AGBOX_CO_TRY_VOID(check_id("sandbox_id", sandbox_id));
  if (undeleted() + undecided_.size() >= maxima::kSandboxes) {
    co_return fail(reason::kResourceExhausted,
                   "there are " + std::to_string(maxima::kSandboxes) +
                       " sandboxes already; delete some that are no longer needed");
  }
  if (spec_bytes() + spec.bytes > maxima::kAllSpecBytes) {
    co_return fail(reason::kResourceExhausted,
                   "the specs of all sandboxes would have more than " +
                       std::to_string(maxima::kAllSpecBytes >> 20U) +
                       " MiB; delete sandboxes that are no longer needed");
  }
  AGBOX_CO_TRY_VOID(check_ports(sandbox_id, spec.create_spec.ports()));
  const auto ports =
      undecided_ports_.emplace(undecided_ports_.end(), sandbox_id, spec.create_spec.ports());
  const std::size_t bytes = spec.bytes;
  Undecided& undecided = undecided_[sandbox_id];
  if (undecided.creates++ == 0) undecided.decided = new_event();
  undecided_spec_bytes_ += bytes;
  auto accepted = co_await accept(std::move(spec), sandbox_id);
  undecided_spec_bytes_ -= bytes;
  undecided_ports_.erase(ports);
  if (--undecided.creates == 0) {
    undecided.decided->set();
    undecided_.erase(sandbox_id);
  }
  co_return accepted;
}

// A sandbox of the same ID is no holder: that the ID is used already is the store's to say.
Result<> Directory::check_ports(const std::string& sandbox_id, const PortMappings& ports) const {
  const auto compare = [&](const std::string& id, const PortMappings& taken) -> Result<> {
    if (id == sandbox_id) return {};
    for (const v1::PortMapping& port : ports) {
      const auto is_same = [&port](const auto& other) { return is_same_host_port(port, other); };
      if (std::ranges::none_of(taken, is_same)) continue;
      return std::unexpected(port_in_use({.port = port, .holder = "sandbox " + id}));
    }
    return {};
  };
  if (ports.empty()) return {};
  for (const auto& [id, taken] : undecided_ports_) AGBOX_TRY_VOID(compare(id, taken));
  for (const auto& [id, actor] : actors_) {
    if (actor->holds_ports()) AGBOX_TRY_VOID(compare(id, actor->ports()));
  }
  return {};
}

std::size_t Directory::spec_bytes() const {
  std::size_t bytes = undecided_spec_bytes_;
  for (const auto& [id, actor] : actors_) bytes += actor->spec_bytes();
  return bytes;
}

Directory::Call<void> Directory::wait_for(std::shared_ptr<Event> event) {
  if (event->is_set()) co_return Result<>{};
  if (waiting_calls_ >= maxima::kWaitingCalls) {
    co_return fail(
        reason::kResourceExhausted,
        std::to_string(maxima::kWaitingCalls) +
            " calls wait for the container engine's first answer already; try again later");
  }
  ++waiting_calls_;
  const bool has_happened = co_await event->wait();
  --waiting_calls_;
  if (!has_happened) co_return std::unexpected(shutting_down());
  co_return Result<>{};
}

Directory::Call<SandboxActor*> Directory::find_for_engine(std::string sandbox_id) {
  AGBOX_CO_TRY_VOID(find(sandbox_id));
  AGBOX_CO_TRY_VOID(co_await wait_for(engine_asked_));
  co_return find(sandbox_id);
}

Result<> Directory::check_still_on(const std::string& engine_id) const {
  if (services_.is_shutting_down) return std::unexpected(shutting_down());
  AGBOX_TRY(engine, services_.engine_status.check());
  if (engine.id != engine_id) {
    return fail(reason::kEngineUnavailable,
                "the daemon has just connected to another container engine; call again");
  }
  return services_.isolation.check();
}

Directory::Call<v1::SandboxHandle> Directory::accept(SandboxSpec spec, std::string sandbox_id) {
  AGBOX_CO_TRY_VOID(co_await wait_for(engine_asked_));
  AGBOX_CO_TRY(engine, services_.engine_status.check());
  AGBOX_CO_TRY_VOID(check_cpus(spec, engine.cpus));
  AGBOX_CO_TRY_VOID(check_disk_limit_support(spec, engine.disk_limit_shortcoming));
  AGBOX_CO_TRY_VOID(services_.isolation.check());
  const auto& dns = services_.created_with.dns();
  AGBOX_CO_TRY_VOID(check_resolvers({dns.begin(), dns.end()}));
  store::v1::CreatedWith created_with = services_.created_with;
  created_with.set_engine_id(engine.id);
  AGBOX_CO_TRY(pins, co_await services_.place.resolve_mounts(spec.create_spec, created_with,
                                                             engine.root_directory));
  spec.bytes = spec.create_spec.ByteSizeLong();
  // If there is such a sandbox, the ports may be its own.
  if (!actors_.contains(sandbox_id)) {
    AGBOX_CO_TRY_VOID(
        co_await check_host_ports(services_.engine, services_.place, spec.create_spec.ports()));
  }
  const bool was_host_asked = pins || !spec.create_spec.ports().empty();
  if (was_host_asked) AGBOX_CO_TRY_VOID(check_still_on(engine.id));
  // Added to the others once its ID is reserved: only the store knows every ID that was ever used.
  auto actor = std::make_unique<SandboxActor>(services_, std::move(sandbox_id), std::move(spec),
                                              std::move(created_with));
  if (pins) actor->place().keep(std::move(pins));
  AGBOX_CO_TRY_VOID(co_await actor->accept().wait());
  SandboxActor& created = *actor;
  actors_.emplace(created.id(), std::move(actor));
  // The handle as accepted, although the same change already recorded that it is being prepared: a
  // subscription from this sequence receives everything that follows.
  v1::SandboxHandle handle = created.handle();
  handle.set_last_event_sequence(1);
  created.begin();
  co_return handle;
}

Result<SandboxActor*> Directory::find(const std::string& sandbox_id) const {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const auto found = actors_.find(sandbox_id);
  if (found != actors_.end()) return found->second.get();
  if (const auto broken = unreadable_.find(sandbox_id); broken != unreadable_.end()) {
    return fail(reason::kStoreFailed,
                "sandbox " + sandbox_id +
                    " cannot be read from the daemon's store: " + broken->second +
                    "; restore the store from a backup, or remove the sandbox's "
                    "container and network by hand",
                {{"sandbox_id", sandbox_id}});
  }
  return std::unexpected(sandbox_not_found(sandbox_id));
}

Result<v1::SandboxHandle> Directory::get(const std::string& sandbox_id) const {
  AGBOX_TRY(actor, find(sandbox_id));
  return actor->handle();
}

Result<v1::ListSandboxesResponse> Directory::list(const v1::ListSandboxesRequest& request) const {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  const auto after = PageToken::parse(request.page_token());
  if (!after) return std::unexpected(after.error());
  std::vector<const v1::SandboxHandle*> matching;
  for (const auto& [id, actor] : actors_) {
    if (actor->is_deleted() && !request.include_deleted()) continue;
    if (!has_labels(actor->handle().labels(), request.label_selector())) continue;
    if (after->precedes(actor->handle())) matching.push_back(&actor->handle());
  }
  std::ranges::sort(matching, comes_before);
  v1::ListSandboxesResponse response;
  std::size_t bytes = 0;
  for (const v1::SandboxHandle* handle : matching) {
    bytes += handle->ByteSizeLong() + 8;
    const auto listed = static_cast<std::uint32_t>(response.sandboxes_size());
    const bool is_full = request.page_size() > 0 && listed >= request.page_size();
    if (listed > 0 && (is_full || bytes > kPageBytes)) {
      response.set_next_page_token(PageToken::of(*response.sandboxes().rbegin()).text());
      break;
    }
    *response.add_sandboxes() = *handle;
  }
  return response;
}

Directory::Call<void> Directory::stop(std::string sandbox_id) {
  AGBOX_CO_TRY(actor, co_await find_for_engine(sandbox_id));
  co_return co_await actor->stop().wait();
}

Directory::Call<void> Directory::resume(std::string sandbox_id) {
  AGBOX_CO_TRY(actor, co_await find_for_engine(sandbox_id));
  if (!actor->holds_ports()) AGBOX_CO_TRY_VOID(check_ports(sandbox_id, actor->ports()));
  // Not of one that failed: its own container may still have them.
  if (actor->handle().state() == v1::SANDBOX_STATE_STOPPED && !actor->ports().empty()) {
    AGBOX_CO_TRY_VOID(co_await check_host_ports(services_.engine, services_.place, actor->ports()));
    AGBOX_CO_TRY(found_again, find(sandbox_id));  // the host was waited for
    actor = found_again;
    AGBOX_CO_TRY_VOID(check_ports(sandbox_id, actor->ports()));
  }
  co_return co_await actor->resume().wait();
}

Directory::Call<void> Directory::remove(std::string sandbox_id) {
  if (const auto undecided = undecided_.find(sandbox_id);
      undecided != undecided_.end() && !actors_.contains(sandbox_id)) {
    AGBOX_CO_TRY_VOID(co_await wait_for(undecided->second.decided));
  }
  AGBOX_CO_TRY(actor, find(sandbox_id));
  co_return co_await actor->remove(kDeleteRequested).wait();
}

Directory::Call<std::vector<std::string>> Directory::remove_matching(SandboxLabels selector) {
  if (selector.empty()) {
    co_return fail(reason::kInvalidArgument, "label_selector must not be empty");
  }
  std::vector<std::string> ids;
  std::vector<SandboxActor::OnDisk> accepted;  // all of them at once
  for (const auto& [id, actor] : actors_) {
    if (!actor->is_deletable() || !has_labels(actor->handle().labels(), selector)) continue;
    ids.push_back(id);
    accepted.push_back(actor->remove(kDeleteRequested));
  }
  Result<> all;
  for (const auto& one : accepted) {
    if (auto stored = co_await one.wait(); !stored && all) all = std::move(stored);
  }
  AGBOX_CO_TRY_VOID(all);
  co_return ids;
}

Result<std::shared_ptr<EventSubscription>> Directory::subscribe(
    const v1::SubscribeSandboxEventsRequest& request, std::function<void()> on_available) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  AGBOX_TRY(actor, find(request.sandbox_id()));
  const auto& feed = actor->feed();
  if (request.from_sequence() > feed->newest()) {
    const std::string anchor = std::to_string(request.from_sequence());
    return fail(reason::kSandboxEventSequenceExpired,
                "sandbox " + request.sandbox_id() + " event sequence " + anchor +
                    " is outside retained history",
                {{"sandbox_id", request.sandbox_id()}, {"from_sequence", anchor}});
  }
  std::optional<EventSubscription::Snapshot> snapshot;
  if (request.include_current_snapshot()) snapshot = actor->execs().snapshot();
  return EventSubscription::open(feed, services_.store, request.from_sequence(),
                                 std::move(snapshot), std::move(on_available));
}

Result<ContainerId> Directory::container(const std::string& sandbox_id,
                                         const std::string& name) const {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  AGBOX_TRY(actor, find(sandbox_id));
  return actor->container(name);
}

Result<std::vector<NamedContainer>> Directory::containers(const std::string& sandbox_id) const {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  AGBOX_TRY(actor, find(sandbox_id));
  return actor->containers();
}

Result<std::shared_ptr<AllEventsSubscription>> Directory::subscribe(
    const v1::SubscribeEventsRequest& request, std::function<void()> on_available) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  return services_.all_events.subscribe(request, std::move(on_available));
}

void Directory::engine_was_asked() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  engine_asked_->set();
}

void Directory::restart_is_due(const std::string& sandbox_id) {
  if (const auto actor = find(sandbox_id)) (*actor)->restart_is_due();
}

void Directory::end_exec_waits(const std::string& sandbox_id) {
  if (const auto actor = find(sandbox_id)) (*actor)->end_exec_waits();
}

void Directory::end_exec_timeouts(const std::string& sandbox_id) {
  if (const auto actor = find(sandbox_id)) (*actor)->execs().end_timeouts();
}

void Directory::isolation_failed(const std::string& sandbox_id, const std::string& why) {
  if (const auto actor = find(sandbox_id)) (*actor)->isolation_failed(why);
}

void Directory::isolation_holds(const std::string& sandbox_id, bool from_inside) {
  if (const auto actor = find(sandbox_id)) (*actor)->isolation_holds(from_inside);
}

void Directory::engine_is_back() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  for (const auto& [id, actor] : actors_) actor->engine_is_back();
}

}  // namespace agbox
