// SPDX-License-Identifier: Apache-2.0
// The engine's API as typed calls, one method per row of engine_call.h, and a few composed calls
// that create or remove our objects. No decision about sandboxes is made here.
//
// Every call has a deadline (see engine_call.h), fails with an EngineError and never throws; for
// threads and cancellation see engine_transport.h. The client must outlive its calls.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/docker/api/container_spec.h"
#include "engine/docker/api/engine_transport.h"
#include "engine/docker/api/observations.h"
#include "engine/docker/images/pull_progress.h"
#include "engine/docker/objects/object_owner.h"
#include "engine/engine_error.h"
#include "model/sandbox/container_log.h"
#include "model/spec/image_reference.h"

namespace agbox {

struct RemoveOptions {
  bool force = false;         // even if running
  bool with_volumes = false;  // including anonymous volumes
};

struct PullOptions {
  std::string registry_auth{};                             // X-Registry-Auth; empty: anonymous
  std::function<void(const PullProgress&)> on_progress{};  // for every line
  // A pull has no deadline, but must report progress.
  std::chrono::milliseconds longest_silence = std::chrono::minutes(5);
};

struct EventFilter {
  EngineLabels labels{};               // an empty value matches any
  std::vector<std::string> types{};    // container, network
  std::vector<std::string> actions{};  // die, oom
};

struct ProcessEnd {
  int exit_code = 0;
  std::string output{};  // its end, for people
};

class EngineClient {
 public:
  EngineClient(asio::any_io_executor executor, EngineOptions options)
      : transport_(std::move(executor), std::move(options)) {}

  const asio::any_io_executor& executor() const { return transport_.executor(); }

  EngineAwaitable<> ping(CallOptions options = {});
  // The engine that calls go to; connects if necessary.
  EngineAwaitable<EngineIdentity> engine(CallOptions options = {});
  // The engine now behind the socket, whether usable or not.
  EngineAwaitable<EngineIdentity> identify(CallOptions options = {});

  // By any name that the engine knows, including IDs.
  EngineAwaitable<ImageSeen> inspect_image(std::string image, CallOptions options = {});
  EngineAwaitable<> pull_image(ImageReference image, PullOptions pull, CallOptions options = {});

  EngineAwaitable<std::string> create_network(NetworkSpec spec, CallOptions options = {});
  EngineAwaitable<NetworkSeen> inspect_network(std::string id, CallOptions options = {});
  EngineAwaitable<std::vector<NetworkSeen>> list_networks(EngineLabels labels,
                                                          CallOptions options = {});
  enum class Disconnect {
    Container,
    StaleEndpoint,  // also of a container that is gone, by its name
  };
  EngineAwaitable<> disconnect_network(std::string id, std::string container,
                                       CallOptions options = {},
                                       Disconnect what = Disconnect::Container);
  EngineAwaitable<> remove_network(std::string id, CallOptions options = {});

  EngineAwaitable<std::string> create_container(ContainerSpec spec, CallOptions options = {});
  EngineAwaitable<ContainerSeen> inspect_container(std::string id, CallOptions options = {});
  // Running or not.
  EngineAwaitable<std::vector<ContainerListed>> list_containers(EngineLabels labels,
                                                                CallOptions options = {});
  // Starting a running container succeeds, as does stopping one that does not run.
  EngineAwaitable<> start_container(std::string id, CallOptions options = {});
  EngineAwaitable<> stop_container(std::string id, std::chrono::seconds grace,
                                   CallOptions options = {});
  // With SIGKILL, and waits for its end. What is paused does not run before. Conflict if it does
  // not run.
  EngineAwaitable<> kill_container(std::string id, CallOptions options = {});
  // Freezes all its processes. Pausing a paused container succeeds, as does unpausing one that is
  // not paused, also if it does not run. Conflict if one that is to be paused does not run.
  EngineAwaitable<> pause_container(std::string id, CallOptions options = {});
  EngineAwaitable<> unpause_container(std::string id, CallOptions options = {});
  EngineAwaitable<> wait_until_removed(std::string id, CallOptions options = {});
  // Until it does not run.
  EngineAwaitable<> wait_until_ended(std::string id, CallOptions options = {});
  // A file in it, without opening it; running or not. NotFound if the file or the container does
  // not exist.
  EngineAwaitable<FileSeen> stat_path(std::string id, std::string path, CallOptions options = {});
  // The end of what it printed, for people; at most this many lines.
  EngineAwaitable<std::string> read_output(std::string id, int lines, CallOptions options = {});
  // All that it printed, or what the query selects of that, with times: see log_frames.h. The head
  // of the answer comes at once. Without `follow`, and if the container does not run, it ends after
  // what there is.
  EngineAwaitable<EngineStream> open_log(std::string id, LogQuery query, CallOptions options = {});
  // What it uses now; of one that does not run, nothing.
  EngineAwaitable<ContainerUsage> measure_container(std::string id, CallOptions options = {});
  EngineAwaitable<> remove_container(std::string id, RemoveOptions remove,
                                     CallOptions options = {});

  // A process in a running container, to be run once; Conflict if that does not run, or is paused.
  // Returns its ID.
  EngineAwaitable<std::string> create_exec(std::string container_id,
                                           std::vector<std::string> command,
                                           CallOptions options = {});
  // Until the end of its output; returns the end of that, for people. TimedOut after the deadline,
  // and then it runs on.
  EngineAwaitable<std::string> run_exec(std::string exec_id, CallOptions options);
  // The engine may see the end of a process a moment after that of its output.
  EngineAwaitable<ExecSeen> inspect_exec(std::string exec_id, CallOptions options = {});
  // All of these: runs a process to its end. TimedOut if that does not come in time, and then it
  // runs on. Its exit code is 126 or 127 if the engine cannot start it.
  EngineAwaitable<ProcessEnd> run_process(std::string container_id,
                                          std::vector<std::string> command,
                                          std::chrono::milliseconds timeout,
                                          CallOptions options = {});

  // Starts a process as root and returns at once, with its pid as the engine sees it. Its output
  // goes nowhere.
  EngineAwaitable<std::int64_t> start_process(std::string container_id,
                                              std::vector<std::string> command,
                                              CallOptions options = {});

  EngineAwaitable<EngineStream> open_events(EventFilter filter, CallOptions options = {});

  // --- our own objects, in owned_objects.cpp ---

  // The existing network of this name and owner, or a new one. Adds the owner's labels. Conflict if
  // a foreign object is in the way, which it names; an object that the engine is still creating,
  // and does not list yet, is waited for.
  EngineAwaitable<NetworkSeen> ensure_network(ObjectOwner owner, NetworkSpec spec,
                                              CallOptions options = {});
  // The same for a container; returns its ID. An existing container of ours is used unchanged.
  EngineAwaitable<std::string> ensure_container(ObjectOwner owner, ContainerSpec spec,
                                                CallOptions options = {});
  // The same for a container whose name is not its alone: the existing one with the labels `key`,
  // or a new one that has them. It has `other_name` if another container of our instance has its
  // name.
  EngineAwaitable<std::string> ensure_container_with(ObjectOwner owner, EngineLabels key,
                                                     ContainerSpec spec, std::string other_name,
                                                     CallOptions options = {});
  // The owner's existing network; nullopt if it is gone.
  EngineAwaitable<std::optional<NetworkSeen>> find_network_of(ObjectOwner owner, std::string name,
                                                              CallOptions options = {});
  // Regardless of owner; nullopt if it is gone or the ID is empty.
  EngineAwaitable<std::optional<ContainerSeen>> find_container(std::string id,
                                                               CallOptions options = {});
  // Conflict if it is not the owner's.
  EngineAwaitable<std::optional<ContainerSeen>> find_container_of(ObjectOwner owner, std::string id,
                                                                  CallOptions options = {});
  // By ID; succeeds if it is gone or does not run.
  EngineAwaitable<> stop_if_there(std::string id, std::chrono::seconds grace,
                                  CallOptions options = {});
  // The same without a grace period, even if it is paused: stopping it would let it run for a
  // moment.
  EngineAwaitable<> kill_if_there(std::string id, CallOptions options = {});
  // The same: succeeds if it is gone or does not run.
  EngineAwaitable<> pause_if_running(std::string id, CallOptions options = {});
  // The same: succeeds if it is gone or not paused.
  EngineAwaitable<> unpause_if_there(std::string id, CallOptions options = {});
  // With force and volumes; succeeds if it is gone. A removal in progress is awaited, for as long
  // as EnginePatience says.
  EngineAwaitable<> remove_owned_container(ObjectOwner owner, std::string id,
                                           CallOptions options = {});
  // All of the owner's objects concurrently; returns the first failure after all were tried.
  // Running containers lose this network; one without a network of this name is left alone.
  EngineAwaitable<> detach_containers_of(ObjectOwner owner, std::string network,
                                         CallOptions options = {});
  EngineAwaitable<> remove_containers_of(ObjectOwner owner, CallOptions options = {});
  EngineAwaitable<> remove_networks_of(ObjectOwner owner, CallOptions options = {});

 private:
  struct NamedContainer {
    std::string id;
    EngineLabels labels;
  };
  // A call whose answer `read` understands.
  template <class T>
  EngineAwaitable<T> ask(EngineRequest request, CallOptions options,
                         EngineResult<T> (*read)(std::string_view));
  // A call whose response body is not needed.
  EngineAwaitable<> order(EngineRequest request, CallOptions options);
  // The end of a stream of output.
  EngineAwaitable<std::string> read_to_end(EngineRequest request, CallOptions options);
  EngineAwaitable<> wait_until(std::string id, std::string_view condition, CallOptions options);
  EngineAwaitable<> set_paused(std::string id, bool is_paused, CallOptions options);
  // A new container, or the one that has its name.
  EngineAwaitable<NamedContainer> create_or_find(ContainerSpec spec, CallOptions options);
  EngineAwaitable<> detach(std::string container_id, std::string network, CallOptions options);
  EngineAwaitable<> force_remove(std::string id, CallOptions options);
  EngineAwaitable<> force_remove_once(std::string id, std::chrono::steady_clock::time_point limit,
                                      CallOptions options);
  EngineAwaitable<> remove_stale_endpoints(std::string network_id, CallOptions options);
  EngineAwaitable<> remove_if_there(std::string network_id, CallOptions options);

  EngineTransport transport_;
};

}  // namespace agbox
