// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/engine_call.h"

#include <array>
#include <utility>

namespace agbox {
namespace {

using namespace std::chrono_literals;
using enum EngineCall;

constexpr bool kMiss = true;
constexpr bool kClash = true;
constexpr bool kHang = true;

// One row per line: scripts/check-engine-contract reads them.
// clang-format off
constexpr std::array kRoutes = {
    EngineRoute{Ping, "Ping", "GET", "/_ping", "ping", 5s},
    EngineRoute{Version, "Version", "GET", "/version", "ask for the version", 10s},
    EngineRoute{Info, "Info", "GET", "/info", "ask for the settings", 20s},
    EngineRoute{ImageInspect, "ImageInspect", "GET", "/images/{}/json", "inspect image", 15s, kMiss},
    EngineRoute{ImagePull, "ImagePull", "POST", "/images/create", "pull image", std::nullopt, kMiss},
    EngineRoute{NetworkCreate, "NetworkCreate", "POST", "/networks/create", "create network", 60s, false, kClash},
    EngineRoute{NetworkInspect, "NetworkInspect", "GET", "/networks/{}", "inspect network", 15s, kMiss},
    EngineRoute{NetworkList, "NetworkList", "GET", "/networks", "list networks", 30s},
    EngineRoute{NetworkDisconnect, "NetworkDisconnect", "POST", "/networks/{}/disconnect", "disconnect a container from network", 30s, kMiss, false, kHang},
    EngineRoute{NetworkRemove, "NetworkRemove", "DELETE", "/networks/{}", "remove network", 60s, kMiss, kClash},
    EngineRoute{ContainerCreate, "ContainerCreate", "POST", "/containers/create", "create container", 60s, kMiss, kClash},
    EngineRoute{ContainerInspect, "ContainerInspect", "GET", "/containers/{}/json", "inspect container", 15s, kMiss, false, kHang},
    EngineRoute{ContainerList, "ContainerList", "GET", "/containers/json", "list containers", 30s},
    EngineRoute{ContainerStart, "ContainerStart", "POST", "/containers/{}/start", "start container", 60s, kMiss, false, kHang},
    EngineRoute{ContainerStop, "ContainerStop", "POST", "/containers/{}/stop", "stop container", 60s, kMiss, false, kHang},
    EngineRoute{ContainerKill, "ContainerKill", "POST", "/containers/{}/kill", "kill container", 30s, kMiss, kClash, kHang},
    EngineRoute{ContainerPause, "ContainerPause", "POST", "/containers/{}/pause", "pause container", 30s, kMiss, kClash},
    EngineRoute{ContainerUnpause, "ContainerUnpause", "POST", "/containers/{}/unpause", "unpause container", 30s, kMiss},
    EngineRoute{ContainerWait, "ContainerWait", "POST", "/containers/{}/wait", "wait for container", std::nullopt, kMiss, false, kHang},
    EngineRoute{ContainerPathStat, "ContainerPathStat", "HEAD", "/containers/{}/archive", "inspect a file in container", 15s, kMiss, false, kHang},
    EngineRoute{ContainerLogs, "ContainerLogs", "GET", "/containers/{}/logs", "read the output of container", 15s, kMiss, false, kHang},
    EngineRoute{ContainerStats, "ContainerStats", "GET", "/containers/{}/stats", "measure container", 15s, kMiss, false, kHang},
    EngineRoute{ContainerRemove, "ContainerRemove", "DELETE", "/containers/{}", "remove container", 60s, kMiss, kClash, kHang},
    EngineRoute{ExecCreate, "ExecCreate", "POST", "/containers/{}/exec", "create a process in container", 15s, kMiss, kClash, kHang},
    EngineRoute{ExecStart, "ExecStart", "POST", "/exec/{}/start", "run process", std::nullopt, kMiss, kClash, kHang},
    EngineRoute{ExecInspect, "ExecInspect", "GET", "/exec/{}/json", "inspect process", 15s, kMiss, false, kHang},
    EngineRoute{Events, "Events", "GET", "/events", "watch events", std::nullopt},
};
// clang-format on

consteval bool rows_are_in_the_order_of_the_enum() {
  for (std::size_t i = 0; i < kRoutes.size(); ++i) {
    if (std::to_underlying(kRoutes[i].call) != static_cast<int>(i)) return false;
  }
  return kRoutes.size() == std::to_underlying(Events) + 1;
}
static_assert(rows_are_in_the_order_of_the_enum());

}  // namespace

const EngineRoute& route_of(EngineCall call) {
  return kRoutes.at(static_cast<std::size_t>(std::to_underlying(call)));
}

}  // namespace agbox
