// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/subscription_filter.h"

#include <string>

#include "model/spec/maxima.h"
#include "model/spec/request_checks.h"

namespace agbox {

Result<SubscriptionFilter> SubscriptionFilter::parse(const v1::SubscribeEventsRequest& request) {
  SubscriptionFilter filter;
  const SandboxLabels& selector = request.label_selector();
  AGBOX_TRY_VOID(at_most(selector.size(), maxima::kLabels, "the number of labels"));
  for (const auto& [key, value] : selector) {
    AGBOX_TRY_VOID(at_most(key.size(), maxima::kLabelKeyBytes, "the size of a label's key"));
    AGBOX_TRY_VOID(at_most(value.size(), maxima::kLabelValueBytes, "the size of a label's value"));
  }
  filter.selector_ = selector;
  for (const int type : request.event_types()) {
    if (type == v1::EVENT_TYPE_UNSPECIFIED || !v1::EventType_IsValid(type)) {
      return invalid_argument("event_types: " + std::to_string(type) + " is not an event type");
    }
    filter.types_.set(static_cast<std::size_t>(type));
  }
  return filter;
}

bool SubscriptionFilter::passes(const v1::SandboxEvent& event, const SandboxLabels& labels) const {
  const auto type = static_cast<std::size_t>(event.event_type());
  if (types_.any() && (type >= types_.size() || !types_.test(type))) return false;
  return has_labels(labels, selector_);
}

}  // namespace agbox
