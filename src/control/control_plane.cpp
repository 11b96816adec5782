// SPDX-License-Identifier: Apache-2.0
#include "control/control_plane.h"

#include <algorithm>
#include <utility>

#include "engine/docker/api/event_watch.h"
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
                                                          Place& place, ControlOptions options,
                                                          Logger log) {
  place.describe(options.created_with);
  AGBOX_TRY(loaded, store.load());
  std::unique_ptr<ControlPlane> plane(
      new ControlPlane(loop, blocking, store, clock, place, std::move(options), std::move(log)));
  plane->directory_.restore(std::move(loaded));
  plane->isolation_.start();
  plane->isolation_.prove_live_sandboxes();  // of an earlier daemon, also while no engine answers
  return plane;
}

ControlPlane::ControlPlane(ControlLoop& loop, const asio::any_io_executor& blocking, Store& store,
                           const Clock& clock, Place& place, ControlOptions options, Logger log)
    : log_(std::move(log)),
      engine_(loop.io().get_executor(),
              {.socket_path = options.engine_socket,
               .judge = agbox::judge,
               .on_engine_seen = [this](const EngineIdentity& engine) { engine_seen(engine); }}),
      registry_auth_(options.environment),
      pulls_(engine_, registry_auth_, log_),
      isolation_(loop.io(), place,
                 {.created_with = options.created_with,
                  .live_sandboxes = [this] { return directory_.live_sandboxes(); },
                  .is_live = [this](const std::string& id) { return directory_.is_live(id); },
                  .place_of = [this](const std::string& id) { return directory_.place_of(id); },
                  .on_unproven = [this](const std::string& id) { directory_.doubt_container(id); }},
                 log_),
      subnets_(options.address_pool, bridge_prefix(store.instance_id())),
      starts_(loop.io().get_executor(), kStartsAtOnce),
      looks_(loop.io().get_executor(), kLooksAtOnce),
      operations_(loop.io().get_executor()),
      calls_(loop.io().get_executor()),
      deadlines_(loop, clock,
                 [this](const std::string& sandbox_id) { directory_.time_is_up(sandbox_id); }),
      restarts_(loop, clock,
                [this](const std::string& sandbox_id) { directory_.restart_is_due(sandbox_id); }),
      services_{.loop = loop,
                .blocking = blocking,
                .clock = clock,
                .log = log_,
                .store = store,
                .engine = engine_,
                .pulls = pulls_,
                .place = place,
                .isolation = isolation_,
                .subnets = subnets_,
                .starts = starts_,
                .looks = looks_,
                .execs = execs_,
                .tasks = operations_,
                .calls = calls_,
                .deadlines = deadlines_,
                .restarts = restarts_,
                .ttls = options.ttls,
                .created_with = std::move(options.created_with)},
      directory_(services_),
      janitor_(services_, {.of = [this](const std::string& id) { return directory_.claim_of(id); },
                           .sandbox_ids = [this] { return directory_.sandbox_ids(); }}),
      diagnosis_(
          services_, directory_, janitor_,
          {.engine_socket = options.engine_socket, .lock_file = std::move(options.lock_file)}),
      watches_(loop.io().get_executor()),
      diagnoses_(loop.io().get_executor()),
      ending_(loop.io().get_executor()) {
  EventConsumer consumer{.reconcile_due = [this] { engine_watched(); },
                         .event = [this](const EngineEvent& event) { engine_told(event); },
                         .lost = [this](const EngineError& error) { engine_lost(error); }};
  // Of everybody: what it tells of a network has no labels to ask for.
  EventWatchOptions watch{
      .filter = {.types = {"container", "network"}, .actions = {"create", "die", "oom"}}};
  watches_.spawn("engine events",
                 watch_events(engine_, std::move(consumer), log_, std::move(watch)));
  watches_.spawn("resolvers",
                 place.follow_resolvers([this](const std::vector<Ipv4Address>& resolvers) {
                   use_resolvers(resolvers);
                 }));
}

void ControlPlane::use_resolvers(const std::vector<Ipv4Address>& resolvers) {
  store::v1::CreatedWith kept = services_.created_with;
  kept.clear_dns();
  std::string listed;
  for (const Ipv4Address& resolver : resolvers) {
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
  co_await services_.place.disconnect();
  const bool needs_isolation = directory_.has_any() || !janitor_.unknown_primaries().empty();
  co_await isolation_.stop(!needs_isolation);
  done();
}

}  // namespace agbox
