// SPDX-License-Identifier: Apache-2.0
// Which events a subscriber to all sandboxes wants: by the labels of their sandbox and by type.
#pragma once

#include <bitset>

#include "agbox/v1/event.pb.h"
#include "agbox/v1/service.pb.h"
#include "base/result.h"
#include "model/sandbox/label_selector.h"

namespace agbox {

class SubscriptionFilter {
 public:
  // Passes everything.
  SubscriptionFilter() = default;
  // INVALID_ARGUMENT for a type that does not exist; RESOURCE_EXHAUSTED for a selector that no
  // sandbox can match, because a subscription keeps it in memory.
  static Result<SubscriptionFilter> parse(const v1::SubscribeEventsRequest& request);

  // `labels` are those of the event's sandbox.
  bool passes(const v1::SandboxEvent& event, const SandboxLabels& labels) const;

 private:
  SandboxLabels selector_;
  std::bitset<v1::EventType_ARRAYSIZE> types_;  // none: all
};

}  // namespace agbox
