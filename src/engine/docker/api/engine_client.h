// SPDX-License-Identifier: Apache-2.0
// The engine's API as typed calls, one method per row of engine_call.h, and the few calls composed
// of them that make or remove what is ours. No decision about sandboxes is taken here.
//
// Every call has a deadline (see engine_call.h), fails with an EngineError and never throws; see
// engine_transport.h for threads and cancellation. The client outlives its calls.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/docker/api/container_output.h"
#include "engine/docker/api/container_spec.h"
#include "engine/docker/api/engine_transport.h"
#include "engine/docker/api/observations.h"
#include "engine/docker/images/image_reference.h"
#include "engine/docker/images/pull_progress.h"
#include "engine/docker/objects/object_owner.h"

namespace agbox {

template <class T = void>
using EngineAwaitable = boost::asio::awaitable<EngineResult<T>>;

enum class WaitFor { NotRunning, NextExit, Removed };

struct RemoveOptions {
  bool force = false;         // a running one too
  bool with_volumes = false;  // its anonymous volumes too
};

struct LogOptions {
  int last_lines = 1000;
  std::size_t kept_per_stream = 64UL * 1024;
};

struct PullOptions {
  std::string registry_auth{};                             // X-Registry-Auth; empty: anonymously
  std::function<void(const PullProgress&)> on_progress{};  // with every line
  // A pull lasts as long as it likes, but not without a sign of life.
  std::chrono::milliseconds longest_silence = std::chrono::minutes(5);
};

struct EventFilter {
  EngineLabels labels{};               // an empty value: whatever the value
  std::vector<std::string> types{};    // container, network
  std::vector<std::string> actions{};  // die, oom
};

class EngineClient {
 public:
  EngineClient(boost::asio::any_io_executor executor, EngineOptions options)
      : transport_(std::move(executor), std::move(options)) {}

  const boost::asio::any_io_executor& executor() const { return transport_.executor(); }

  EngineAwaitable<> ping(CallOptions options = {});
  // The engine that calls go to; gets to know it where we do not yet.
  EngineAwaitable<EngineIdentity> engine(CallOptions options = {});
  // Who is there now, fit or not.
  EngineAwaitable<EngineIdentity> identify(CallOptions options = {});

  // By any name that the engine knows, ids included.
  EngineAwaitable<ImageSeen> inspect_image(std::string image, CallOptions options = {});
  EngineAwaitable<> pull_image(ImageReference image, PullOptions pull, CallOptions options = {});

  EngineAwaitable<std::string> create_network(NetworkSpec spec, CallOptions options = {});
  EngineAwaitable<NetworkSeen> inspect_network(std::string id, CallOptions options = {});
  EngineAwaitable<std::vector<NetworkSeen>> list_networks(EngineLabels labels,
                                                          CallOptions options = {});
  EngineAwaitable<> disconnect_network(std::string id, std::string container_id,
                                       CallOptions options = {});
  EngineAwaitable<> remove_network(std::string id, CallOptions options = {});

  EngineAwaitable<std::string> create_container(ContainerSpec spec, CallOptions options = {});
  EngineAwaitable<ContainerSeen> inspect_container(std::string id, CallOptions options = {});
  // Running or not.
  EngineAwaitable<std::vector<ContainerListed>> list_containers(EngineLabels labels,
                                                                CallOptions options = {});
  // A container that runs already is a success; so is one to stop that does not run.
  EngineAwaitable<> start_container(std::string id, CallOptions options = {});
  EngineAwaitable<> stop_container(std::string id, std::chrono::seconds grace,
                                   CallOptions options = {});
  EngineAwaitable<> kill_container(std::string id, std::string signal, CallOptions options = {});
  // Gives the exit code.
  EngineAwaitable<std::int64_t> wait_container(std::string id, WaitFor what,
                                               CallOptions options = {});
  EngineAwaitable<> remove_container(std::string id, RemoveOptions remove,
                                     CallOptions options = {});
  EngineAwaitable<ContainerOutput> read_logs(std::string id, LogOptions log,
                                             CallOptions options = {});
  // Unpacks a tar stream below `folder`, which must exist in the container.
  EngineAwaitable<> put_archive(std::string id, std::string folder, BodySource tar,
                                CallOptions options = {});

  EngineAwaitable<std::string> create_exec(std::string container_id, ExecSpec spec,
                                           CallOptions options = {});
  // Starts it and waits for its end. Whoever gives up waiting leaves the program running.
  EngineAwaitable<ContainerOutput> start_exec(std::string exec_id, std::size_t kept_per_stream,
                                              CallOptions options = {});
  EngineAwaitable<ExecSeen> inspect_exec(std::string exec_id, CallOptions options = {});

  EngineAwaitable<EngineStream> open_events(EventFilter filter, CallOptions options = {});

  // --- of what is ours, in owned_objects.cpp ---

  // The network of this name and owner: the one that is there, or a new one. The owner's labels are
  // added. Conflict that names it where something that is not ours is in the way; what the engine
  // is making just now, and does not list yet, is waited for.
  EngineAwaitable<NetworkSeen> ensure_network(ObjectOwner owner, NetworkSpec spec,
                                              CallOptions options = {});
  // The same for a container; gives its id. One of ours under this name is taken as it is.
  EngineAwaitable<std::string> ensure_container(ObjectOwner owner, ContainerSpec spec,
                                                CallOptions options = {});
  // What is there of the owner, and never a new one; nothing where it is gone.
  EngineAwaitable<std::optional<NetworkSeen>> find_network_of(ObjectOwner owner, std::string name,
                                                              CallOptions options = {});
  // Whosever it is; nothing where it is gone, or the id is empty.
  EngineAwaitable<std::optional<ContainerSeen>> find_container(std::string id,
                                                               CallOptions options = {});
  // Conflict where it is not the owner's.
  EngineAwaitable<std::optional<ContainerSeen>> find_container_of(ObjectOwner owner, std::string id,
                                                                  CallOptions options = {});
  // By the id that the engine gave it; one that is gone or does not run is a success.
  EngineAwaitable<> stop_if_there(std::string id, std::chrono::seconds grace,
                                  CallOptions options = {});
  // By force, with its volumes; one that is gone already is a success.
  EngineAwaitable<> remove_owned_container(ObjectOwner owner, std::string id,
                                           CallOptions options = {});
  // All that the owner has, side by side; the first failure, after all were tried.
  // Those that run lose this network; one that has none of this name keeps what it has.
  EngineAwaitable<> detach_containers_of(ObjectOwner owner, std::string network,
                                         CallOptions options = {});
  EngineAwaitable<> remove_containers_of(ObjectOwner owner, CallOptions options = {});
  EngineAwaitable<> remove_networks_of(ObjectOwner owner, CallOptions options = {});

 private:
  EngineAwaitable<> detach(std::string container_id, std::string network, CallOptions options);
  EngineAwaitable<> force_remove(std::string id, CallOptions options);
  EngineAwaitable<> force_remove_once(std::string id, CallOptions options);
  EngineAwaitable<> remove_if_there(std::string network_id, CallOptions options);

  EngineTransport transport_;
};

}  // namespace agbox
