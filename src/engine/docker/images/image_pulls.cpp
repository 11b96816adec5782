// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/images/image_pulls.h"

#include <boost/asio/steady_timer.hpp>
#include <optional>

#include "async/cancellation.h"

namespace agbox {

// Shared by its waiters and its own coroutine.
struct ImagePulls::Pull {
  Pull(std::string its_key, const asio::any_io_executor& executor)
      : key(std::move(its_key)), done(executor), next_report(executor) {}

  std::string key;
  Event done;  // the outcome is known
  asio::steady_timer next_report;
  std::optional<Task> task;
  std::optional<EngineResult<>> outcome;
  std::list<Listener> listeners;
  std::size_t waiting = 0;

  // At most one report per interval, and none in the first.
  void report(const PullProgress& progress, std::chrono::milliseconds interval) {
    if (next_report.expiry() > std::chrono::steady_clock::now()) return;
    next_report.expires_after(interval);
    for (const Listener& listener : std::list(listeners)) listener(progress);
  }
};

ImagePulls::ImagePulls(EngineClient& client, const RegistryAuth& auth, Logger log, Options options)
    : client_(client),
      auth_(auth),
      log_(std::move(log)),
      options_(options),
      tasks_(client.executor()) {}

EngineAwaitable<ImageSeen> ImagePulls::ensure_image(std::string image, Listener listener,
                                                    CallOptions options) {
  const Result<ImageReference> reference = parse_image_reference(image);
  if (!reference) co_return engine_fail(EngineErrorKind::Refused, reference.error().message());
  EngineResult<ImageSeen> seen = co_await client_.inspect_image(image, options);
  if (seen || seen.error().kind() != EngineErrorKind::NotFound) co_return seen;
  if (is_image_id(image)) co_return seen;  // no registry knows it

  if (EngineResult<> pulled = co_await join(*reference, listener, options); !pulled) {
    co_return std::unexpected(std::move(pulled.error()));
  }
  co_return co_await client_.inspect_image(image, options);
}

EngineAwaitable<> ImagePulls::join(const ImageReference& reference, const Listener& listener,
                                   const CallOptions& options) {
  if (has_stopped_) co_return engine_fail(EngineErrorKind::Cancelled, "no more pulls: stopping");
  // Sandboxes of different engines do not share a pull.
  const std::string key = options.expected_engine + " " + reference.canonical();
  const auto found = pulls_.find(key);
  const std::shared_ptr<Pull> pull =
      found != pulls_.end() ? found->second : begin(reference, options);
  const auto place = pull->listeners.insert(
      pull->listeners.end(), listener ? listener : [](const PullProgress&) {});
  ++pull->waiting;

  const bool has_ended = co_await pull->done.wait();
  pull->listeners.erase(place);
  --pull->waiting;
  if (has_ended) co_return *pull->outcome;
  if (pull->waiting == 0) {
    // Later callers must not join a pull that is being cancelled.
    pulls_.erase(pull->key);
    pull->task->cancel();
  }
  co_return engine_fail(EngineErrorKind::Cancelled,
                        "pull image " + reference.canonical() + ": cancelled");
}

std::shared_ptr<ImagePulls::Pull> ImagePulls::begin(const ImageReference& reference,
                                                    const CallOptions& options) {
  auto pull = std::make_shared<Pull>(options.expected_engine + " " + reference.canonical(),
                                     client_.executor());
  pulls_[pull->key] = pull;
  pull->task = tasks_.spawn("pull " + reference.canonical(), run(pull, reference, options));
  return pull;
}

asio::awaitable<void> ImagePulls::run(std::shared_ptr<Pull> pull, ImageReference reference,
                                      CallOptions options) {
  EngineResult<> outcome = co_await pull_image(*pull, std::move(reference), std::move(options));
  if (const auto found = pulls_.find(pull->key); found != pulls_.end() && found->second == pull) {
    pulls_.erase(found);
  }
  pull->outcome = std::move(outcome);
  pull->done.set();
}

asio::awaitable<EngineResult<>> ImagePulls::pull_image(Pull& pull, ImageReference reference,
                                                       CallOptions options) {
  if (co_await is_cancelled()) co_return engine_fail(EngineErrorKind::Cancelled, "cancelled");
  const std::string name = reference.canonical();
  // A concurrent pull may have ended since the caller checked.
  if (co_await client_.inspect_image(name, options)) co_return EngineResult<>{};
  pull.next_report.expires_after(options_.report_interval);
  const Result<std::string> credentials = co_await auth_.header_for(reference.credentials_key());
  if (!credentials) {
    log_.warn("cannot read registry credentials, pulling anonymously",
              {{"image", name}, {"error", credentials.error().message()}});
  }
  log_.info("pulling image", {{"image", name}});
  EngineResult<> outcome = co_await client_.pull_image(
      reference,
      {.registry_auth = credentials.value_or(""),
       .on_progress =
           [this, &pull](const PullProgress& progress) {
             pull.report(progress, options_.report_interval);
           },
       .longest_silence = options_.longest_silence},
      {.deadline = std::nullopt, .expected_engine = options.expected_engine});
  // A refusal without credentials is best explained by why there were none.
  if (!outcome && !credentials && !outcome.error().is_open()) {
    outcome =
        std::unexpected(EngineError(outcome.error().kind(),
                                    outcome.error().message() + " (pulled without credentials: " +
                                        credentials.error().message() + ")",
                                    outcome.error().http_status(), outcome.error().engine_text()));
  }
  co_return outcome;
}

asio::awaitable<void> ImagePulls::stop() {
  has_stopped_ = true;
  tasks_.cancel();
  co_await tasks_.join();
}

}  // namespace agbox
