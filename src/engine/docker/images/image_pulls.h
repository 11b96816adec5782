// SPDX-License-Identifier: Apache-2.0
// Brings images to the engine: one pull per image however many wait for it. Each of them can give
// up alone; when the last one has, the pull is given up too.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "async/event.h"
#include "async/task_group.h"
#include "base/log.h"
#include "engine/docker/api/engine_client.h"
#include "engine/docker/images/registry_auth.h"

namespace agbox {

class ImagePulls {
 public:
  using Listener = std::function<void(const PullProgress&)>;
  struct Options {
    // How often a listener hears of progress at most, and how long a pull lasts before it does.
    std::chrono::milliseconds report_interval = std::chrono::seconds(1);
    std::chrono::milliseconds longest_silence = std::chrono::minutes(5);
  };

  ImagePulls(EngineClient& client, const RegistryAuth& auth, Logger log, Options options);
  ImagePulls(EngineClient& client, const RegistryAuth& auth, Logger log)
      : ImagePulls(client, auth, std::move(log), Options()) {}

  // The image, as the engine has it or after a pull. An image that is there is not refreshed.
  EngineAwaitable<ImageSeen> ensure_image(std::string image, Listener listener = {},
                                          CallOptions options = {});

  // Gives up every pull and waits until all are gone; before destruction. Afterwards ensure_image()
  // pulls nothing.
  boost::asio::awaitable<void> stop();

 private:
  struct Pull;
  EngineAwaitable<> join(const ImageReference& reference, const Listener& listener,
                         const CallOptions& options);
  std::shared_ptr<Pull> begin(const ImageReference& reference, const CallOptions& options);
  boost::asio::awaitable<void> run(std::shared_ptr<Pull> pull, ImageReference reference,
                                   CallOptions options);
  boost::asio::awaitable<EngineResult<>> pull_image(Pull& pull, ImageReference reference,
                                                    CallOptions options);

  EngineClient& client_;
  const RegistryAuth& auth_;
  Logger log_;
  Options options_;
  // Those that can be joined. The coroutines of given-up pulls live on for a moment without them.
  std::map<std::string, std::shared_ptr<Pull>> pulls_;
  bool has_stopped_ = false;
  TaskGroup tasks_;
};

}  // namespace agbox
