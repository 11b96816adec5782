// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/doctor/engine_report.h"

#include <chrono>
#include <utility>

#include "engine/docker/api/refusal.h"

namespace agbox {
namespace {

// Per call: a user is waiting.
const CallOptions kCall{.deadline = std::chrono::seconds(5)};

asio::awaitable<std::vector<std::string>> list_subnets(EngineClient& engine) {
  std::vector<std::string> subnets;
  const auto networks = co_await engine.list_networks({}, kCall);
  if (!networks) co_return subnets;
  for (const NetworkSeen& network : *networks) {
    subnets.insert(subnets.end(), network.subnets.begin(), network.subnets.end());
  }
  co_return subnets;
}

asio::awaitable<Result<std::vector<std::string>>> find_missing_images(
    EngineClient& engine, std::span<const std::string> images) {
  std::vector<std::string> missing;
  for (const std::string& image : images) {
    const auto seen = co_await engine.inspect_image(image, kCall);
    if (seen) continue;
    if (seen.error().kind() != EngineErrorKind::NotFound) {
      co_return std::unexpected<Error>(seen.error());
    }
    missing.push_back(image);
  }
  co_return missing;
}

}  // namespace

asio::awaitable<Result<EngineReport>> ask_engine_report(EngineClient& engine, std::string endpoint,
                                                        EngineLabels own_labels,
                                                        std::span<const std::string> images) {
  const auto seen = co_await engine.identify(kCall);
  if (!seen) co_return fail(seen.error().reason(), describe_unreachable(seen.error()));
  const Result<> fit = judge(*seen);
  EngineReport report{.title = title_of(*seen),
                      .endpoint = std::move(endpoint),
                      .unfit = fit ? std::string() : fit.error().message(),
                      .firewall_backend = seen->firewall_backend,
                      .has_live_restore = seen->has_live_restore,
                      .storage_driver = seen->storage_driver,
                      .backing_filesystem = seen->backing_filesystem,
                      .root_directory = seen->root_directory,
                      .subnets = co_await list_subnets(engine),
                      .missing_images = co_await find_missing_images(engine, images),
                      .containers = {}};
  if (auto listed = co_await engine.list_containers(std::move(own_labels), kCall)) {
    report.containers = std::move(*listed);
  } else {
    report.containers = std::unexpected<Error>(listed.error());
  }
  co_return report;
}

}  // namespace agbox
