// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/companion.h"

#include <algorithm>

namespace agbox {
namespace {

using namespace std::chrono_literals;
using google::protobuf::Duration;
using CompanionList = google::protobuf::RepeatedPtrField<v1::CompanionContainerSpec>;
using std::chrono::milliseconds;

constexpr milliseconds kLongestHealthLimit = 5min;
// Of container engines, if the check does not say.
constexpr milliseconds kDefaultInterval = 30s;
constexpr milliseconds kDefaultTimeout = 30s;
constexpr milliseconds kDefaultStartInterval = 5s;
constexpr std::uint32_t kDefaultRetries = 3;

constexpr milliseconds kFirstProbePause = 20ms;
constexpr milliseconds kLongestProbePause = 2s;

// Rounded up, and never more than `most`: a valid duration may have ten thousand years.
milliseconds to_milliseconds(const Duration& duration, milliseconds most) {
  if (duration.seconds() >= std::chrono::ceil<std::chrono::seconds>(most).count()) return most;
  return std::min(most,
                  std::chrono::seconds(duration.seconds()) +
                      std::chrono::ceil<milliseconds>(std::chrono::nanoseconds(duration.nanos())));
}

// Zero means the default.
milliseconds value_or(const Duration& duration, milliseconds otherwise) {
  const milliseconds value = to_milliseconds(duration, kLongestHealthLimit);
  return value == 0ms ? otherwise : value;
}

void add(std::vector<CompanionFacts>& all, const SandboxFacts& facts, const CompanionList& specs,
         v1::CompanionRole role) {
  const v1::CreateSpec& sandbox = facts.spec.create_spec;
  for (const v1::CompanionContainerSpec& spec : specs) {
    CompanionFacts companion{
        .sandbox_id = facts.sandbox_id,
        .role = role,
        .spec = spec,
        .sandbox_labels = {sandbox.labels().begin(), sandbox.labels().end()},
        .dns = {facts.created_with.dns().begin(), facts.created_with.dns().end()},
        .engine_id = facts.created_with.engine_id(),
        .container = {}};
    const auto kept = facts.containers.find(spec.name());
    if (kept != facts.containers.end()) companion.container = kept->second;
    all.push_back(std::move(companion));
  }
}

}  // namespace

std::vector<CompanionFacts> companions_of(const SandboxFacts& facts) {
  const v1::CreateSpec& sandbox = facts.spec.create_spec;
  std::vector<CompanionFacts> all;
  add(all, facts, sandbox.required_services(), v1::COMPANION_ROLE_REQUIRED_SERVICE);
  add(all, facts, sandbox.optional_services(), v1::COMPANION_ROLE_OPTIONAL_SERVICE);
  add(all, facts, sandbox.companion_containers(), v1::COMPANION_ROLE_COMPANION);
  return all;
}

milliseconds health_limit(const v1::HealthcheckConfig& check) {
  const milliseconds interval = value_or(check.interval(), kDefaultInterval);
  const milliseconds timeout = value_or(check.timeout(), kDefaultTimeout);
  const std::int64_t retries = check.retries() == 0 ? kDefaultRetries : check.retries();
  milliseconds limit = std::max(interval, timeout) * (retries + 1);
  const milliseconds start_period = value_or(check.start_period(), 0ms);
  if (start_period > 0ms) {
    limit +=
        start_period + std::max(value_or(check.start_interval(), kDefaultStartInterval), timeout);
  }
  return std::min(limit, kLongestHealthLimit);
}

milliseconds probe_timeout(const v1::HealthcheckConfig& check) {
  constexpr milliseconds kLongest = std::chrono::hours(24 * 365);
  const milliseconds timeout = to_milliseconds(check.timeout(), kLongest);
  return timeout == 0ms ? kDefaultTimeout : timeout;
}

milliseconds probe_pause(milliseconds elapsed) {
  return std::clamp(elapsed / 10, kFirstProbePause, kLongestProbePause);
}

}  // namespace agbox
