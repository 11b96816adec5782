// SPDX-License-Identifier: Apache-2.0
// All requests to an engine: route, deadline, and expected refusals. src/engine/docker uses no
// other, and scripts/check-engine-contract compares the engine contract test with this table.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace agbox {

enum class EngineCall {
  Ping,
  Version,
  Info,
  ImageInspect,
  ImagePull,
  NetworkCreate,
  NetworkInspect,
  NetworkList,
  NetworkDisconnect,
  NetworkRemove,
  ContainerCreate,
  ContainerInspect,
  ContainerList,
  ContainerStart,
  ContainerStop,
  ContainerKill,
  ContainerPause,
  ContainerUnpause,
  ContainerWait,
  ContainerPathStat,
  ContainerLogs,
  ContainerStats,
  ContainerRemove,
  ExecCreate,
  ExecStart,
  ExecInspect,
  Events,
};

struct EngineRoute {
  EngineCall call;
  std::string_view name;
  std::string_view method;
  std::string_view path;     // {} is replaced by the object
  std::string_view attempt;  // for messages: "start container"
  // The deadline of the whole call; none for calls that last as long as what they watch.
  std::optional<std::chrono::milliseconds> deadline;
  bool can_miss = false;   // may answer "not found"
  bool can_clash = false;  // may answer "conflict"
  // May hang because of the state of its container, while the engine answers other calls: TimedOut
  // then, instead of Unavailable. Not for calls that are repeated until their outcome is known.
  bool can_hang_alone = false;
};

const EngineRoute& route_of(EngineCall call);

}  // namespace agbox
