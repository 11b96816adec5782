// SPDX-License-Identifier: Apache-2.0
// agboxd for a fake engine: the same store, control plane and server, wired as in src/daemon,
// without what requires a real engine. It never exits by itself: the robustness tests kill it.
#include <signal.h>
#include <sys/stat.h>
#include <boost/asio/thread_pool.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "control/control_loop.h"
#include "control/control_plane.h"
#include "daemon/configuration.h"
#include "daemon/control_options.h"
#include "daemon/engine_options.h"
#include "daemon/host_lock.h"
#include "daemon/runtime_directory.h"
#include "paths/fixed_paths.h"
#include "place/local/local_place.h"
#include "rpc/server.h"
#include "rpc/unix_listener.h"
#include "store/store.h"
#include "unit/place/fake_isolation.h"

namespace agbox {
namespace {

Result<> serve() {
  const Environment environment = current_environment();
  AGBOX_TRY(paths, resolve_fixed_paths(current_platform(), environment));
  AGBOX_TRY(configuration, load_configuration(paths));
  set_log_level(configuration.log_level);
  const Logger log = Logger().with({"daemon", "agboxd"});
  const SystemClock clock;
  ControlLoop loop;
  boost::asio::thread_pool blocking(1);

  AGBOX_TRY(directory, RuntimeDirectory::open(paths.runtime_directory, log));
  AGBOX_TRY(lock, HostLock::acquire(directory, paths.lock.filename().c_str()));
  auto post = [&loop](std::function<void()> callback) { loop.post(std::move(callback)); };
  AGBOX_TRY(store, Store::open(
                       {.path = paths.store, .post = std::move(post), .clock = clock, .log = log}));
  AGBOX_TRY(its_engine, engine_options(configuration, environment, store->instance_id()));
  AGBOX_TRY(its_place, place_options(configuration, paths, environment, store->instance_id()));
  // Fake guests reconnect often: daemons are killed faster than in practice.
  its_place.guest_limits.penalty = std::chrono::milliseconds(10);
  DockerEngine engine(loop.io().get_executor(), blocking.get_executor(), std::move(its_engine),
                      log);
  FakeIsolation isolation(loop.io());
  AGBOX_TRY(place, LocalPlace::create(loop.io().get_executor(), blocking.get_executor(), isolation,
                                      std::move(its_place), log));
  AGBOX_TRY(plane, ControlPlane::start(loop, *store, clock, engine, *place,
                                       control_options(configuration, paths), log));
  AGBOX_TRY(listener, UnixListener::open(loop, directory.fd(), paths.socket, log));
  AGBOX_TRY(server, RpcServer::start(loop, *plane,
                                     {.version = "0", .instance_id = store->instance_id()}, log));
  listener->accept([&server](UniqueFd connection) { server->serve(std::move(connection)); });
  log.info("listening",
           {{"socket_path", paths.socket.string()}, {"instance_id", store->instance_id()}});
  loop.run();
  return {};
}

}  // namespace
}  // namespace agbox

int main() {
  ::umask(077);
  ::signal(SIGPIPE, SIG_IGN);
  const auto served = agbox::serve();
  std::fprintf(stderr, "%s\n", served ? "nothing is left to do" : served.error().message().c_str());
  return EXIT_FAILURE;
}
