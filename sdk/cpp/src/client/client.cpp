// SPDX-License-Identifier: Apache-2.0
#include <agbox/all_events_follower.h>
#include <agbox/client.h>
#include <agbox/raw_client.h>
#include <agbox/sandbox_wait.h>

#include <optional>
#include <utility>

#include "base/uuid.h"
#include "client_core.h"
#include "conversions.h"
#include "create_once.h"
#include "exec_process.h"
#include "wait_stop.h"

namespace agbox::sdk {

namespace {

class AllEvents final : public Sequence<EventMessage>::Source {
 public:
  AllEvents(std::shared_ptr<const ClientCore> core, v1::SubscribeEventsRequest request,
            const std::stop_token& stop)
      : core_(std::move(core)), follower_(core_->raw(), std::move(request), core_->follow(stop)) {}

  Result<std::optional<EventMessage>> next() override {
    const auto message = follower_.next();
    if (!message) return std::unexpected(message.error());
    return from_message(*message);
  }

 private:
  std::shared_ptr<const ClientCore> core_;  // outlives the follower
  AllEventsFollower follower_;
};

Result<v1::SandboxHandle> create_sandbox(const ClientCore& core,
                                         const v1::CreateSandboxRequest& request, bool is_own_id,
                                         const std::stop_token& stop) {
  const auto call = [&] { return core.raw().create_sandbox(request); };
  ReconnectBackoff backoff(core.raw(), "create of sandbox " + request.sandbox_id(),
                           core.follow(stop));
  auto created = is_own_id ? create_once(backoff, call) : call();
  if (!created) return std::unexpected(created.error());
  if (created->has_sandbox()) return std::move(*created->mutable_sandbox());
  // The response was lost.
  v1::GetSandboxRequest lookup;
  lookup.set_sandbox_id(request.sandbox_id());
  auto found = backoff.retry([&] { return core.raw().get_sandbox(lookup); });
  if (!found) return std::unexpected(found.error());
  return std::move(*found->mutable_sandbox());
}

}  // namespace

Client::Client(std::shared_ptr<const ClientCore> core) : core_(std::move(core)) {}

Result<Client> Client::open(const ConnectOptions& options) {
  auto raw = RawClient::open({.socket = options.socket, .timeout = options.call_timeout});
  if (!raw) return std::unexpected(raw.error());
  return Client(std::make_shared<const ClientCore>(std::move(*raw), options.reconnect_attempts));
}

Result<DaemonInfo> Client::ping() const {
  const auto response = core_->raw().ping();
  if (!response) return std::unexpected(response.error());
  return DaemonInfo{.version = response->version(),
                    .instance_id = response->instance_id(),
                    .engine = response->engine(),
                    .features = {response->features().begin(), response->features().end()},
                    .isolation_shortcoming = response->isolation_shortcoming()};
}

Result<Sandbox> Client::create(const SandboxSpec& spec, const WaitLimits& limits) const {
  if (auto reached = core_->reach(); !reached) return std::unexpected(reached.error());
  const WaitStop stop(limits);
  v1::CreateSandboxRequest request = to_request(spec);
  const bool is_own_id = request.sandbox_id().empty();
  if (is_own_id) request.set_sandbox_id(random_uuid());
  Sandbox box(core_, request.sandbox_id(), false);  // deleted unless it is returned
  const auto accepted = create_sandbox(*core_, request, is_own_id, stop.token());
  if (!accepted) {
    // With an ID of the caller it may be another one. One that was refused does not exist, and a
    // daemon that did not come back in all attempts is not tried again.
    const ErrorKind kind = accepted.error().kind;
    const bool may_exist = kind == ErrorKind::Timeout || kind == ErrorKind::Cancelled;
    if (!is_own_id || !may_exist) box.keep();
    return std::unexpected(stop.explain(accepted.error(), "the create of " + box.id()));
  }
  if (accepted->has_lease_ttl()) {
    if (auto held = box.hold(stop.token()); !held) {
      return std::unexpected(stop.explain(held.error(), "the hold of sandbox " + box.id()));
    }
  }
  const auto ready =
      wait_for_sandbox(core_->raw(), box.id(), SandboxGoal::Ready,
                       {.follow = core_->follow(stop.token()), .baseline = *accepted});
  if (!ready) {
    return std::unexpected(stop.explain(ready.error(), "sandbox " + box.id() + " to be ready"));
  }
  return box;
}

Sandbox Client::sandbox(std::string id) const {
  return {core_, std::move(id), true};
}

Result<SandboxInfo> Client::info(const std::string& sandbox_id) const {
  v1::GetSandboxRequest request;
  request.set_sandbox_id(sandbox_id);
  const auto response = core_->raw().get_sandbox(request);
  if (!response) return std::unexpected(response.error());
  return from_message(response->sandbox());
}

Result<std::vector<SandboxInfo>> Client::list(const ListOptions& options) const {
  v1::ListSandboxesRequest request;
  request.set_include_deleted(options.include_deleted);
  request.mutable_label_selector()->insert(options.labels.begin(), options.labels.end());
  std::vector<SandboxInfo> found;
  do {
    const auto page = core_->raw().list_sandboxes(request);
    if (!page) return std::unexpected(page.error());
    for (const v1::SandboxHandle& sandbox : page->sandboxes())
      found.push_back(from_message(sandbox));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return found;
}

Result<std::vector<std::string>> Client::remove_all(
    const std::map<std::string, std::string>& labels, const WaitLimits& limits) const {
  v1::DeleteSandboxesRequest request;
  request.mutable_label_selector()->insert(labels.begin(), labels.end());
  const auto accepted = core_->raw().delete_sandboxes(request);
  if (!accepted) return std::unexpected(accepted.error());
  const WaitStop stop(limits);
  std::vector<std::string> removed;
  for (const std::string& id : accepted->deleted_sandbox_ids()) {
    const auto gone = wait_for_sandbox(core_->raw(), id, SandboxGoal::Deleted,
                                       {.follow = core_->follow(stop.token())});
    if (!gone) {
      return std::unexpected(stop.explain(gone.error(), "sandbox " + id + " to be deleted"));
    }
    removed.push_back(id);
  }
  return removed;
}

Process Client::attach(std::string exec_id, const AttachOptions& options) const {
  auto session = std::make_unique<Process::Session>(core_, std::move(exec_id), options);
  session->detach();
  return Process(std::move(session));
}

Result<ExecInfo> Client::exec_info(const std::string& exec_id) const {
  v1::GetExecRequest request;
  request.set_exec_id(exec_id);
  const auto response = core_->raw().get_exec(request);
  if (!response) return std::unexpected(response.error());
  return from_message(response->exec());
}

Sequence<EventMessage> Client::events(const AllEventsOptions& options) const {
  v1::SubscribeEventsRequest request;
  if (options.cursor.empty()) {
    request.set_start(options.from_now ? v1::EVENTS_START_NOW : v1::EVENTS_START_OLDEST);
  } else {
    request.set_cursor(options.cursor);
  }
  request.mutable_label_selector()->insert(options.labels.begin(), options.labels.end());
  for (const EventType type : options.types)
    request.add_event_types(static_cast<v1::EventType>(type));
  return Sequence<EventMessage>(
      std::make_unique<AllEvents>(core_, std::move(request), options.stop));
}

}  // namespace agbox::sdk
