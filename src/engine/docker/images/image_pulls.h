// SPDX-License-Identifier: Apache-2.0
// Pulls images: one pull per image, shared by all waiters. Each waiter can be cancelled on its own;
// when the last one is, the pull is cancelled too.
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
    // Minimum interval of progress reports, also before the first one.
    std::chrono::milliseconds report_interval = std::chrono::seconds(1);
    std::chrono::milliseconds longest_silence = std::chrono::minutes(5);
  };

  ImagePulls(EngineClient& client, const RegistryAuth& auth, Logger log, Options options);
  ImagePulls(EngineClient& client, const RegistryAuth& auth, Logger log)
      : ImagePulls(client, auth, std::move(log), Options()) {}

  // The existing image, or a pulled one. An existing image is not refreshed.
  EngineAwaitable<ImageSeen> ensure_image(std::string image, Listener listener = {},
                                          CallOptions options = {});

  // Cancels every pull and waits for their end; required before destruction. Afterwards
  // ensure_image() pulls nothing.
  asio::awaitable<void> stop();

 private:
  struct Pull;
  EngineAwaitable<> join(const ImageReference& reference, const Listener& listener,
                         const CallOptions& options);
  std::shared_ptr<Pull> begin(const ImageReference& reference, const CallOptions& options);
  asio::awaitable<void> run(std::shared_ptr<Pull> pull, ImageReference reference,
                            CallOptions options);
  asio::awaitable<EngineResult<>> pull_image(Pull& pull, ImageReference reference,
                                             CallOptions options);

  EngineClient& client_;
  const RegistryAuth& auth_;
  Logger log_;
  Options options_;
  // Pulls that can be joined. The coroutines of cancelled pulls outlive their entries briefly.
  std::map<std::string, std::shared_ptr<Pull>> pulls_;
  bool has_stopped_ = false;
  TaskGroup tasks_;
};

}  // namespace agbox
