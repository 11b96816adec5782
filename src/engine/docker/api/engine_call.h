// SPDX-License-Identifier: Apache-2.0
// Every request that we ever make of an engine: its route, how long we wait for it, and how it can
// be refused. Nothing in src/engine/docker reaches the engine but by a row of this table, and
// scripts/check-engine-contract holds the engine contract test to the same rows.
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
  ContainerWait,
  ContainerRemove,
  ContainerLogs,
  ArchivePut,
  ExecCreate,
  ExecStart,
  ExecInspect,
  Events,
};

struct EngineRoute {
  EngineCall call;
  std::string_view name;
  std::string_view method;
  std::string_view path;     // {} is the object that the call is about
  std::string_view attempt;  // how a person names it: "start container"
  // How long the whole call may take; none for calls that last as long as what they watch.
  std::optional<std::chrono::milliseconds> deadline;
  bool can_miss = false;   // answers "not found"
  bool can_clash = false;  // answers "conflict"
};

const EngineRoute& route_of(EngineCall call);

}  // namespace agbox
