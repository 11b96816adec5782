// SPDX-License-Identifier: Apache-2.0
#include "control/control_plane.h"

#include <algorithm>
#include <utility>

#include "model/reasons.h"

namespace agbox {
namespace {

// Two cores start three to four containers a second at any limit. Much of a start is waiting for
// the kernel's network code, so a lower limit leaves the engine idle; a higher one only makes each
// start slower.
constexpr int kStartsAtOnce = 6;
constexpr int kMaxInspections = 8;

template <class T>
asio::awaitable<void> answer(asio::awaitable<Result<T>> call, Directory::Reply<T> reply) {
  reply(co_await std::move(call));
}

}  // namespace

Result<std::unique_ptr<ControlPlane>> ControlPlane::start(ControlLoop& loop, Store& store,
                                                          const Clock& clock, Engine& engine,
                                                          Place& place, ControlOptions options,
                                                          Logger log) {
  place.describe(options.created_with);
  const auto first_answer_timeout = options.first_answer_timeout;
  AGBOX_TRY(loaded, store.load());
  std::unique_ptr<ControlPlane> plane(
      new ControlPlane(loop, store, clock, engine, place, std::move(options), std::move(log)));
  plane->directory_.restore(std::move(loaded));
  plane->isolation_.start();
  plane->isolation_.verify_live_sandboxes();  // of an earlier daemon; needs no reachable engine
  plane->first_answer_.expires_after(first_answer_timeout);
  return plane;
}

ControlPlane::ControlPlane(ControlLoop& loop, Store& store, const Clock& clock, Engine& engine,
                           Place& place, ControlOptions options, Logger log)
    : log_(std::move(log)),
      engine_status_(engine.name() + " has not answered yet"),
      isolation_(
          loop.io(), place,
          {.created_with = options.created_with,
           .live_sandboxes = [this] { return directory_.live_sandboxes(); },
           .is_live = [this](const std::string& id) { return directory_.is_live(id); },
           .place_of = [this](const std::string& id) { return directory_.place_of(id); },
           .on_failure = [this](const std::string& id,
                                const std::string& why) { directory_.isolation_failed(id, why); },
           .on_success = [this](const std::string& id,
                                bool from_inside) { directory_.isolation_holds(id, from_inside); }},
          log_),
      starts_(loop.io().get_executor(), kStartsAtOnce),
      inspections_(loop.io().get_executor(), kMaxInspections),
      all_events_(std::make_shared<AllEvents>(store, log_)),
      operations_(loop.io().get_executor()),
      deadlines_(loop, clock,
                 [this](const std::string& sandbox_id) { directory_.time_is_up(sandbox_id); }),
      restarts_(loop, clock,
                [this](const std::string& sandbox_id) { directory_.restart_is_due(sandbox_id); }),
      exec_waits_(loop, clock,
                  [this](const std::string& sandbox_id) { directory_.end_exec_waits(sandbox_id); }),
      exec_timeouts_(
          loop, clock,
          [this](const std::string& sandbox_id) { directory_.end_exec_timeouts(sandbox_id); }),
      verifications_(loop, clock,
                     [this](const std::string& sandbox_id) {
                       if (!services_.is_shutting_down) isolation_.verify_soon(sandbox_id);
                     }),
      leases_(loop, clock,
              [this](const std::string& sandbox_id) { directory_.lease_is_due(sandbox_id); }),
      operation_services_{.store = store,
                          .engine = engine,
                          .place = place,
                          .isolation = isolation_,
                          .starts = starts_,
                          .inspections = inspections_},
      services_{.loop = loop,
                .clock = clock,
                .log = log_,
                .store = store,
                .engine = engine,
                .engine_status = engine_status_,
                .place = place,
                .isolation = isolation_,
                .operations = operation_services_,
                .execs = execs_,
                .all_events = *all_events_,
                .tasks = operations_,
                .deadlines = deadlines_,
                .restarts = restarts_,
                .exec_waits = exec_waits_,
                .exec_timeouts = exec_timeouts_,
                .verifications = verifications_,
                .leases = leases_,
                .pauses_unisolated = options.pauses_unisolated,
                .ttls = options.ttls,
                .created_with = std::move(options.created_with)},
      directory_(services_),
      logs_(services_, directory_),
      stats_(services_, directory_),
      janitor_(services_, directory_),
      diagnosis_(services_, directory_, {.lock_file = std::move(options.lock_file)}),
      first_answer_(loop.io().get_executor(), [this] { directory_.engine_was_asked(); }),
      watches_(loop.io().get_executor()),
      diagnoses_(loop.io().get_executor()),
      ending_(loop.io().get_executor()) {
  watches_.spawn("engine events", engine.watch(*this, directory_));
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

void ControlPlane::reachable(const ReachableEngine& engine) {
  engine_status_.set_reachable(engine);
  directory_.engine_was_asked();
}

void ControlPlane::unreachable(std::string problem) {
  was_engine_lost_ = true;
  engine_status_.set_unreachable(std::move(problem));
  directory_.engine_was_asked();
}

void ControlPlane::reconcile_due() {
  directory_.engine_is_back();
  logs_.engine_is_back();
  janitor_.sweep();
  // It may have created their bridges again.
  if (std::exchange(was_engine_lost_, false)) isolation_.verify_live_sandboxes();
}

void ControlPlane::container_may_have_ended(const std::string& sandbox_id) {
  directory_.recheck_container(sandbox_id);
}

void ControlPlane::companion_may_have_changed(const std::string& sandbox_id,
                                              const std::string& name) {
  directory_.recheck_companion(sandbox_id, name);
}

void ControlPlane::object_created(const std::string& sandbox_id) {
  directory_.count_new_object(sandbox_id);
}

Task ControlPlane::read_log(ContainerLogs::Request request, ContainerLogs::Write write,
                            Directory::Reply<void> done) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  return services_.tasks.spawn(
      "log", answer(logs_.read(std::move(request), std::move(write)), std::move(done)));
}

void ControlPlane::get_stats(const std::string& sandbox_id,
                             Directory::Reply<v1::SandboxStats> reply) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  services_.tasks.spawn("stats", answer(stats_.measure(sandbox_id), std::move(reply)));
}

Task ControlPlane::watch_stats(std::string sandbox_id, std::chrono::nanoseconds interval,
                               StatsSampler::Write write, Directory::Reply<void> done) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  return services_.tasks.spawn(
      "stats",
      answer(stats_.watch(std::move(sandbox_id), interval, std::move(write)), std::move(done)));
}

void ControlPlane::diagnose(std::vector<std::string> images,
                            Directory::Reply<v1::DiagnoseResponse> reply) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (!takes_diagnoses_) return reply(std::unexpected(shutting_down()));
  diagnoses_.spawn("diagnosis", diagnose_and_reply(std::move(images), std::move(reply)));
}

boost::asio::awaitable<void> ControlPlane::diagnose_and_reply(
    std::vector<std::string> images, Directory::Reply<v1::DiagnoseResponse> reply) {
  auto findings = co_await diagnosis_.run(std::move(images));
  if (!takes_diagnoses_) co_return reply(std::unexpected(shutting_down()));
  reply(std::move(findings));
}

void ControlPlane::release_waiting_calls() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  services_.store.stop_waiting();
  directory_.engine_was_asked();
  directory_.keep_unheld();
  // A diagnosis of a hanging engine could outlast the shutdown deadline.
  takes_diagnoses_ = false;
  diagnoses_.cancel();
}

void ControlPlane::shut_down(std::function<void()> done) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  services_.is_shutting_down = true;
  directory_.keep_unheld();
  ending_.spawn("shutdown", end_everything(std::move(done)));
}

boost::asio::awaitable<void> ControlPlane::end_everything(std::function<void()> done) {
  takes_diagnoses_ = false;
  diagnoses_.cancel();
  watches_.cancel();
  operations_.cancel();
  // Before joining the operations: a cancelled one may wait for an engine call that is not
  // cancelled.
  co_await services_.engine.shut_down();
  co_await diagnoses_.join();
  co_await watches_.join();
  co_await operations_.join();
  co_await services_.place.disconnect();
  co_await operations_.join();  // a guest may have connected, and got execs
  const bool needs_isolation =
      directory_.has_any() || !services_.engine.unknown_primaries().empty();
  co_await isolation_.stop(!needs_isolation);
  done();
}

}  // namespace agbox
