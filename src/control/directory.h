// SPDX-License-Identifier: Apache-2.0
// All sandboxes of this daemon, by id: what the calls of clients come to. Every method runs on the
// control thread; replies come on it too, once what they say is on disk.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agbox/v1/service.pb.h"
#include "base/result.h"
#include "control/event_feed.h"
#include "control/retention.h"
#include "control/sandbox_actor.h"
#include "control/services.h"
#include "model/sandbox_spec.h"

namespace agbox {

class Directory {
 public:
  template <class T>
  using Reply = std::function<void(Result<T>)>;

  explicit Directory(Services& services);

  // Takes in what earlier runs of the daemon left, and goes on with it.
  void restore(LoadedSandboxes loaded);

  // An empty id: one is made up.
  void create(SandboxSpec spec, std::string sandbox_id, Reply<v1::SandboxHandle> reply);
  Result<v1::SandboxHandle> get(const std::string& sandbox_id) const;
  // Newest first, one page.
  Result<v1::ListSandboxesResponse> list(const v1::ListSandboxesRequest& request) const;
  void remove(const std::string& sandbox_id, Reply<void> reply);
  // Gives the ids whose deletion this began, in order.
  void remove_matching(const google::protobuf::Map<std::string, std::string>& selector,
                       Reply<std::vector<std::string>> reply);
  Result<std::shared_ptr<EventSubscription>> subscribe(
      const v1::SubscribeSandboxEventsRequest& request, std::function<void()> on_news);

  void engine_is_back();
  // The first try to reach the engine has ended, well or not: creates that came before go on.
  void engine_was_asked();

  Retention& retention() { return retention_; }

 private:
  Result<SandboxActor*> find(const std::string& sandbox_id) const;
  std::size_t undeleted() const;
  SandboxActor::OnDeleted on_deleted();
  void purge(const std::string& sandbox_id);

  Services& services_;
  std::map<std::string, std::unique_ptr<SandboxActor>, std::less<>> actors_;
  std::size_t creates_under_way_ = 0;
  std::vector<std::function<void()>> early_creates_;
  Retention retention_;
};

}  // namespace agbox
