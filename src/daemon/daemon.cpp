// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/failpoint.h"
#include "daemon/control_options.h"
#include "daemon/engine_options.h"

namespace agbox {
namespace {

// Grace period for running calls. They wait for a commit at most; only streams and silent clients
// use all of it.
constexpr std::chrono::milliseconds kGrace{500};
// The documented limit is 5 s. What hangs longer (a disk, a library) is left to recovery at the
// next start.
constexpr std::chrono::seconds kShutdownLimit{4};
static_assert(kShutdownLimit < std::chrono::seconds(5), "exiting takes a moment too");

// One for a hung disk, the rest for work elsewhere.
constexpr std::size_t kBlockingThreads = 3;

}  // namespace

Daemon::Daemon(FixedPaths paths, Configuration configuration, Environment environment, Logger log)
    : paths_(std::move(paths)),
      configuration_(std::move(configuration)),
      environment_(std::move(environment)),
      log_(std::move(log)),
      service_manager_(environment_, log_),
      exit_signals_(loop_.io().get_executor(), kShutdownLimit),
      hang_ups_(loop_.io(), SIGHUP),
      blocking_threads_(kBlockingThreads) {
  std::signal(SIGPIPE, SIG_IGN);  // a disconnected client is a write error
}

int Daemon::run() {
  log_.info("starting", {{"socket_path", paths_.socket.string()},
                         {"id_store_path", paths_.store.string()},
                         {"idle_ttl", configuration_.idle_ttl.count()},
                         {"cleanup_ttl", configuration_.cleanup_ttl.count()},
                         {"log_level", log_level_name(configuration_.log_level)}});
  for (const std::string& name : failpoint::armed()) {
    log_.error("failpoint armed by AGBOX_FAILPOINTS, for tests only", {{"failpoint", name}});
  }
  if (auto done = acquire_lock(); !done)
    return exit_with_error("failed to acquire lock", done.error());
  if (auto done = open_store(); !done)
    return exit_with_error("failed to create service", done.error());
  if (auto done = start_control(); !done)
    return exit_with_error("failed to create service", done.error());
  if (auto done = start_serving(); !done)
    return exit_with_error("server stopped with error", done.error());
  service_manager_.notify("READY=1\nSTATUS=Serving");
  exit_signals_.wait([this] { shut_down(); });
  wait_for_hang_up();
  loop_.run();
  return EXIT_SUCCESS;
}

Result<> Daemon::acquire_lock() {
  AGBOX_TRY(directory, RuntimeDirectory::open(paths_.runtime_directory, log_));
  AGBOX_TRY(lock, HostLock::acquire(directory, paths_.lock.filename().c_str()));
  directory_ = std::move(directory);
  lock_ = std::move(lock);
  return {};
}

Result<> Daemon::open_store() {
  auto post = [this](std::function<void()> callback) { loop_.post(std::move(callback)); };
  auto store =
      Store::open({.path = paths_.store, .post = std::move(post), .clock = clock_, .log = log_});
  if (!store) {
    return std::unexpected(store.error().within("initialize id store " + paths_.store.string()));
  }
  store_ = std::move(*store);
  return {};
}

Result<> Daemon::start_control() {
  AGBOX_TRY(its_engine, engine_options(configuration_, environment_, store_->instance_id()));
  AGBOX_TRY(its_place, place_options(configuration_, paths_, environment_, store_->instance_id()));
  engine_ = std::make_unique<DockerEngine>(
      loop_.io().get_executor(), blocking_threads_.get_executor(), std::move(its_engine), log_);
  isolation_ = std::make_unique<FirewallIsolation>(
      loop_.io().get_executor(), firewall_thread_.executor(),
      FirewallOptions{.instance_id = store_->instance_id(),
                      .address_pool = configuration_.address_pool},
      log_);
  AGBOX_TRY(place, LocalPlace::create(loop_.io().get_executor(), blocking_threads_.get_executor(),
                                      *isolation_, std::move(its_place), log_));
  place_ = std::move(place);
  AGBOX_TRY(plane, ControlPlane::start(loop_, *store_, clock_, *engine_, *place_,
                                       control_options(configuration_, paths_), log_));
  plane_ = std::move(plane);
  return {};
}

Result<> Daemon::start_serving() {
  AGBOX_TRY(listener, UnixListener::open(loop_, directory_->fd(), paths_.socket, log_));
  AGBOX_TRY(server, RpcServer::start(
                        loop_, *plane_,
                        {.version = AGBOX_VERSION, .instance_id = store_->instance_id()}, log_));
  server_ = std::move(server);
  listener_ = std::move(listener);
  listener_->accept([this](UniqueFd connection) { server_->serve(std::move(connection)); });
  log_.info("listening",
            {{"socket_path", paths_.socket.string()}, {"instance_id", store_->instance_id()}});
  return {};
}

int Daemon::exit_with_error(std::string_view step, const Error& error) {
  log_.error(step, {{"error", error.message()}});
  // Programs read the log line; a person at a terminal also gets the plain message.
  if (::isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "agboxd: %s\n", error.message().c_str());
  if (plane_) {  // its tasks already run and must end before it
    plane_->shut_down([this] { loop_.stop(); });
    loop_.run();
  }
  return EXIT_FAILURE;
}

void Daemon::wait_for_hang_up() {
  hang_ups_.async_wait([this](const boost::system::error_code& error, int) {
    AGBOX_CHECK(!error, "nothing cancels this wait");
    log_.warn(
        "SIGHUP changes nothing: the configuration is read at start; restart agboxd to apply a "
        "change; sandboxes keep running");
    wait_for_hang_up();
  });
}

// A polite crash: nothing here is needed for correctness, recovery repairs what is left.
void Daemon::shut_down() {
  AGBOX_FAILPOINT("daemon.shutdown");
  log_.info("shutting down");
  service_manager_.notify("STOPPING=1\nSTATUS=Shutting down");
  listener_->close();
  plane_->release_waiting_calls();
  server_->shut_down(kGrace, [this] { plane_->shut_down([this] { loop_.stop(); }); });
}

}  // namespace agbox
