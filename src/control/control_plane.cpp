// SPDX-License-Identifier: Apache-2.0
#include "control/control_plane.h"

#include <algorithm>
#include <utility>

#include "control/upkeep/host_resolvers.h"
#include "engine/docker/api/event_watch.h"
#include "execlog/file_watch.h"
#include "guestlink/guest_program.h"
#include "model/object_names.h"
#include "model/reasons.h"

namespace agbox {
namespace {

// Two cores start three to four containers a second whatever one does. Much of a start is waiting
// for the kernel's network code, so fewer than these leave the engine idle; more only take longer
// each.
constexpr int kStartsAtOnce = 6;
constexpr int kLooksAtOnce = 8;

std::unexpected<Error> ending() {
  return fail(reason::kShuttingDown, "agboxd is shutting down; ask again when it runs");
}

}  // namespace

Result<std::unique_ptr<ControlPlane>> ControlPlane::start(ControlLoop& loop,
                                                          asio::any_io_executor blocking,
                                                          Store& store, const Clock& clock,
                                                          HostIsolation& isolation,
                                                          ControlOptions options, Logger log) {
  AGBOX_TRY(guest, guestlink::install_guest_program(options.guest_program, options.state_root));
  options.guest_program = guest.path;
  options.created_with.set_guest_program(guest.path.string());
  // Of this instance alone: another daemon of the same user, or this one with another store, may
  // have the same state root.
  const auto link_root = options.state_root / "links" / store.instance_id();
  options.created_with.set_link_root(link_root.string());
  AGBOX_TRY(loaded, store.load());
  std::unique_ptr<ControlPlane> plane(new ControlPlane(loop, blocking, store, clock, isolation,
                                                       std::move(options), std::move(log)));
  plane->directory_.restore(std::move(loaded));
  plane->isolation_.start();
  plane->isolation_.prove_live_sandboxes();  // of an earlier daemon, also while no engine answers
  return plane;
}

ControlPlane::ControlPlane(ControlLoop& loop, const asio::any_io_executor& blocking, Store& store,
                           const Clock& clock, HostIsolation& isolation, ControlOptions options,
                           Logger log)
    : log_(std::move(log)),
      engine_(loop.io().get_executor(),
              {.socket_path = options.engine_socket,
               .judge = agbox::judge,
               .on_engine_seen = [this](const EngineIdentity& engine) { engine_seen(engine); }}),
      registry_auth_(options.environment),
      pulls_(engine_, registry_auth_, log_),
      guests_(loop.io().get_executor(), blocking, options.created_with.link_root(), guest_events(),
              log_, options.guest_limits),
      isolation_(
          loop.io(), isolation,
          {.instance_id = store.instance_id(),
           .created_with = options.created_with,
           .live_sandboxes = [this] { return directory_.live_sandboxes(); },
           .is_live = [this](const std::string& id) { return directory_.is_live(id); },
           .has_guest = [this](const std::string& id) { return guests_.is_connected(id); },
           .probe = [this](std::string id,
                           ProbeTarget target) -> asio::awaitable<Result<ProbeReport>> {
             co_return co_await guests_.probe(std::move(id), target);
           },
           .on_failure = [this](const std::string& id,
                                const std::string& why) { directory_.isolation_failed(id, why); },
           .on_success = [this](const std::string& id,
                                bool from_inside) { directory_.isolation_holds(id, from_inside); }},
          log_),
      subnets_(options.address_pool, bridge_prefix(store.instance_id())),
      starts_(loop.io().get_executor(), kStartsAtOnce),
      looks_(loop.io().get_executor(), kLooksAtOnce),
      spare_files_(options.created_with.exec_output_root(), store.instance_id()),
      operations_(loop.io().get_executor()),
      calls_(loop.io().get_executor()),
      deadlines_(loop, clock,
                 [this](const std::string& sandbox_id) { directory_.time_is_up(sandbox_id); }),
      restarts_(loop, clock,
                [this](const std::string& sandbox_id) { directory_.restart_is_due(sandbox_id); }),
      verifications_(loop, clock,
                     [this](const std::string& sandbox_id) {
                       if (!services_.is_shutting_down) isolation_.verify(sandbox_id);
                     }),
      services_{.loop = loop,
                .blocking = blocking,
                .clock = clock,
                .log = log_,
                .store = store,
                .engine = engine_,
                .pulls = pulls_,
                .guests = guests_,
                .isolation = isolation_,
                .subnets = subnets_,
                .starts = starts_,
                .looks = looks_,
                .execs = execs_,
                .spare_files = spare_files_,
                .tasks = operations_,
                .calls = calls_,
                .deadlines = deadlines_,
                .restarts = restarts_,
                .verifications = verifications_,
                .pauses_unisolated = options.pauses_unisolated,
                .ttls = options.ttls,
                .created_with = std::move(options.created_with)},
      directory_(services_),
      janitor_(services_, {.of = [this](const std::string& id) { return directory_.claim_of(id); },
                           .sandbox_ids = [this] { return directory_.sandbox_ids(); }}),
      diagnosis_(services_, directory_, janitor_,
                 {.engine_socket = options.engine_socket,
                  .lock_file = std::move(options.lock_file),
                  .resolver_files = options.resolver_files}),
      watches_(loop.io().get_executor()),
      diagnoses_(loop.io().get_executor()),
      ending_(loop.io().get_executor()) {
  EventConsumer consumer{.reconcile_due = [this] { engine_watched(); },
                         .event = [this](const EngineEvent& event) { engine_told(event); },
                         .lost = [this](const EngineError& error) { engine_lost(error); }};
  // Of everybody: what it tells of a network has no labels to ask for.
  EventWatchOptions watch{.filter = {.types = {"container", "network"},
                                     .actions = {"create", "die", "oom", "unpause"}}};
  watches_.spawn("engine events",
                 watch_events(engine_, std::move(consumer), log_, std::move(watch)));
  if (!options.resolver_files.empty()) {
    watches_.spawn("resolvers", watch_resolvers(std::move(options.resolver_files)));
  }
}

boost::asio::awaitable<void> ControlPlane::watch_resolvers(
    std::vector<std::filesystem::path> files) {
  const auto watched = co_await watch_files(files, [this, &files] { follow_resolvers(files); });
  if (!watched) {
    log_.warn("other resolvers of this host are not noticed; restart agboxd when they change",
              {{"error", watched.error().message()}});
  }
}

void ControlPlane::follow_resolvers(const std::vector<std::filesystem::path>& files) {
  store::v1::CreatedWith kept = services_.created_with;
  kept.clear_dns();
  std::string listed;
  for (const Ipv4Address& resolver : host_resolvers(files)) {
    kept.add_dns(resolver.text());
    listed += (listed.empty() ? "" : ", ") + resolver.text();
  }
  if (std::ranges::equal(kept.dns(), services_.created_with.dns())) return;
  log_.info("this host asks other resolvers, and so do new sandboxes", {{"resolvers", listed}});
  services_.created_with = std::move(kept);
  isolation_.new_resolvers(services_.created_with);
}

void ControlPlane::engine_seen(const EngineIdentity& engine) {
  log_.info("engine answers", {{"engine_id", engine.id},
                               {"engine_version", engine.version},
                               {"api_version", engine.api.text()}});
  engine_seen_ = engine;
  services_.engine_now = engine;
  directory_.engine_was_asked();
}

// Its event stream has begun, perhaps over a connection to an engine that we have not lost: then
// nobody introduces it again.
void ControlPlane::engine_watched() {
  services_.engine_now = engine_seen_;
  directory_.engine_is_back();
  janitor_.sweep();
  // It may have made their bridges anew.
  if (std::exchange(was_engine_lost_, false)) isolation_.prove_live_sandboxes();
}

// Only that something happened: the sandbox looks for itself.
void ControlPlane::engine_told(const EngineEvent& event) {
  if (event.type == "network") return network_made(event);
  const ObjectOwner ours{.instance = services_.store.instance_id()};
  const auto sandbox = event.attributes.find(sandbox_label());
  if (!ours.owns(event.attributes) || sandbox == event.attributes.end()) return;
  if (event.action != "create") return directory_.doubt_container(sandbox->second);
  directory_.engine_made_something(sandbox->second);
  janitor_.container_made(event.object_id, event.attributes);
}

// Whose it is, only its name tells.
void ControlPlane::network_made(const EngineEvent& event) {
  const auto name = event.attributes.find("name");
  if (event.action != "create" || name == event.attributes.end()) return;
  const auto sandbox_id = sandbox_of_network(name->second);
  if (!sandbox_id) return;
  directory_.engine_made_something(*sandbox_id);
  janitor_.network_made(*sandbox_id);
}

guestlink::GuestLinksEvents ControlPlane::guest_events() {
  return {.connected =
              [this](const std::string& sandbox_id, const guestlink::GuestHello& hello) {
                directory_.guest_connected(sandbox_id, hello);
                isolation_.guest_connected(sandbox_id);
              },
          .lost = [this](const std::string& sandbox_id,
                         const std::string&) { directory_.guest_lost(sandbox_id); },
          .exec_ended =
              [this](const std::string& sandbox_id, const guestlink::ExecEnd& end) {
                directory_.exec_ended(sandbox_id, end);
              },
          .exec_truncated =
              [this](const std::string& sandbox_id, const std::string& exec_id) {
                directory_.exec_truncated(sandbox_id, exec_id);
              }};
}

void ControlPlane::engine_lost(const EngineError& error) {
  was_engine_lost_ = true;
  services_.engine_now.reset();
  services_.engine_problem = error.kind() == EngineErrorKind::Unfit
                                 ? error.message()
                                 : "the Docker Engine does not answer: " + error.message();
  directory_.engine_was_asked();
}

void ControlPlane::diagnose(std::vector<std::string> images,
                            Directory::Reply<v1::DiagnoseResponse> reply) {
  if (!takes_diagnoses_) return reply(ending());
  diagnoses_.spawn("diagnosis", diagnose_and_reply(std::move(images), std::move(reply)));
}

boost::asio::awaitable<void> ControlPlane::diagnose_and_reply(
    std::vector<std::string> images, Directory::Reply<v1::DiagnoseResponse> reply) {
  auto findings = co_await diagnosis_.run(std::move(images));
  if (!takes_diagnoses_) co_return reply(ending());
  reply(std::move(findings));
}

void ControlPlane::answer_who_waits() {
  services_.store.stop_waiting();
  directory_.engine_was_asked();
  // An engine that hangs would keep them longer than the shutdown may take.
  takes_diagnoses_ = false;
  diagnoses_.cancel();
}

void ControlPlane::shut_down(std::function<void()> done) {
  services_.is_shutting_down = true;
  ending_.spawn("shutdown", end_everything(std::move(done)));
}

boost::asio::awaitable<void> ControlPlane::end_everything(std::function<void()> done) {
  takes_diagnoses_ = false;
  diagnoses_.cancel();
  watches_.cancel();
  operations_.cancel();
  calls_.cancel();
  co_await pulls_.stop();
  co_await diagnoses_.join();
  co_await watches_.join();
  co_await operations_.join();
  co_await calls_.join();
  co_await guests_.shutdown();
  const bool needs_isolation = directory_.has_any() || !janitor_.unknown_primaries().empty();
  co_await isolation_.stop(!needs_isolation);
  done();
}

}  // namespace agbox
