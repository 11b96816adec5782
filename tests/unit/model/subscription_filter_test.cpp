// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/subscription_filter.h"

#include <gmock/gmock.h>

#include "model/reasons.h"
#include "model/spec/maxima.h"

namespace agbox {
namespace {

v1::SandboxEvent of_type(int type) {
  v1::SandboxEvent event;
  event.set_event_type(static_cast<v1::EventType>(type));
  return event;
}

SandboxLabels labels(const std::map<std::string, std::string>& all) {
  return {all.begin(), all.end()};
}

TEST(SubscriptionFilter, WithoutConditionsEverythingPasses) {
  const auto filter = SubscriptionFilter::parse({});
  EXPECT_TRUE(filter->passes(of_type(v1::SANDBOX_READY), {}));
  EXPECT_TRUE(filter->passes(of_type(99), labels({{"a", "1"}})));
}

TEST(SubscriptionFilter, EveryLabelAndOneOfTheTypesMustMatch) {
  v1::SubscribeEventsRequest request;
  (*request.mutable_label_selector())["team"] = "red";
  (*request.mutable_label_selector())["job"] = "";
  request.add_event_types(v1::SANDBOX_READY);
  request.add_event_types(v1::SANDBOX_SERVICE_FAILED);  // an alias
  const auto filter = SubscriptionFilter::parse(request);
  const SandboxLabels both = labels({{"team", "red"}, {"job", ""}, {"more", "1"}});
  EXPECT_TRUE(filter->passes(of_type(v1::SANDBOX_READY), both));
  EXPECT_TRUE(filter->passes(of_type(v1::COMPANION_CONTAINER_FAILED), both));
  EXPECT_FALSE(filter->passes(of_type(v1::SANDBOX_FAILED), both));
  EXPECT_FALSE(filter->passes(of_type(99), both));
  EXPECT_FALSE(filter->passes(of_type(v1::SANDBOX_READY), labels({{"team", "red"}})));
  EXPECT_FALSE(filter->passes(of_type(v1::SANDBOX_READY), labels({{"team", "blue"}, {"job", ""}})));
  EXPECT_FALSE(filter->passes(of_type(v1::SANDBOX_READY), {}));
}

TEST(SubscriptionFilter, WhatNothingCanMatchIsRefused) {
  for (const int type : {0, 15, -1, 1000}) {
    v1::SubscribeEventsRequest request;
    request.add_event_types(static_cast<v1::EventType>(type));
    const auto refused = SubscriptionFilter::parse(request);
    ASSERT_FALSE(refused.has_value()) << type;
    EXPECT_EQ(refused.error().reason(), reason::kInvalidArgument);
    EXPECT_EQ(refused.error().message(),
              "event_types: " + std::to_string(type) + " is not an event type");
  }
  v1::SubscribeEventsRequest many;
  for (std::size_t i = 0; i <= maxima::kLabels; ++i) {
    (*many.mutable_label_selector())["key-" + std::to_string(i)] = "";
  }
  v1::SubscribeEventsRequest long_key;
  (*long_key.mutable_label_selector())[std::string(maxima::kLabelKeyBytes + 1, 'k')] = "";
  v1::SubscribeEventsRequest long_value;
  (*long_value.mutable_label_selector())["k"] = std::string(maxima::kLabelValueBytes + 1, 'v');
  for (const auto& request : {many, long_key, long_value}) {
    const auto refused = SubscriptionFilter::parse(request);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().reason(), reason::kResourceExhausted);
  }
}

}  // namespace
}  // namespace agbox
