// SPDX-License-Identifier: Apache-2.0
// Everything that the checks need from the engine, in one call.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/docker/api/engine_client.h"

namespace agbox {

struct EngineReport {
  std::string title;             // "Docker 28.5.2 (API 1.51)"
  std::string endpoint;          // its socket
  std::string unfit;             // why it cannot run sandboxes; empty if it can
  std::string firewall_backend;  // empty before Docker 29, which had only iptables
  bool has_live_restore = false;
  // Where it stores the files of containers.
  std::string storage_driver;
  std::string backing_filesystem;  // empty if the engine does not report it
  std::string root_directory;
  std::vector<std::string> subnets;  // of its networks; empty if it does not list them
  Result<std::vector<std::string>> missing_images;  // of those asked for
  Result<std::vector<ContainerListed>> containers;  // with the label of this instance
};

// Fails if the engine is unreachable.
asio::awaitable<Result<EngineReport>> ask_engine_report(EngineClient& engine, std::string endpoint,
                                                        EngineLabels own_labels,
                                                        std::span<const std::string> images);

}  // namespace agbox
