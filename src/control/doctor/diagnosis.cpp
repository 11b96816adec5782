// SPDX-License-Identifier: Apache-2.0
#include "control/doctor/diagnosis.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <map>
#include <string_view>

#include "async/cancellation.h"
#include "control/doctor/checks/daemon_files.h"
#include "control/doctor/checks/disk.h"
#include "control/doctor/checks/firewall.h"
#include "control/doctor/checks/isolation.h"
#include "control/doctor/checks/network.h"
#include "model/spec/image_reference.h"
#include "model/spec/maxima.h"

namespace agbox {
namespace {

constexpr int kMostImagesRequested = 16;

template <class Check>
asio::awaitable<void> run_check(const CheckContext& context, v1::DiagnoseResponse& response) {
  Findings findings(response, Check::kName);
  if constexpr (std::same_as<decltype(Check::gather(context)), Check>) {
    Check::gather(context).judge(findings);
  } else {
    const Check check = co_await Check::gather(context);
    check.judge(findings);
  }
  co_return;
}

constexpr auto kChecks = {
    &run_check<CapabilityCheck>, &run_check<FirewallCheck>,       &run_check<FirewallRepairsCheck>,
    &run_check<IsolationCheck>,  &run_check<OtherFirewallsCheck>, &run_check<IpForwardCheck>,
    &run_check<ResolversCheck>,  &run_check<StoreCheck>,          &run_check<StoredSandboxesCheck>,
    &run_check<LockCheck>,       &run_check<GuestProgramCheck>,   &run_check<DiskCheck>,
};

// The order in which people read the findings, whoever made them.
constexpr auto kOrder = std::to_array<std::string_view>(
    {"engine", "live-restore", "layer-quota", "capability", "firewall", "firewall-repairs",
     "isolation", "other-firewalls", "ip-forward", "address-pool", "resolvers", "store",
     "stored-sandboxes", "lock", "guest-program", "disk", "images", "unknown-primaries"});

v1::DiagnoseResponse in_order(v1::DiagnoseResponse response) {
  std::multimap<std::ptrdiff_t, v1::Finding> by_place;
  for (v1::Finding& finding : *response.mutable_findings()) {
    const auto place = std::ranges::find(kOrder, finding.check()) - kOrder.begin();
    by_place.emplace(place, std::move(finding));
  }
  v1::DiagnoseResponse sorted;
  for (auto& [place, finding] : by_place) *sorted.add_findings() = std::move(finding);
  return sorted;
}

}  // namespace

Result<std::vector<std::string>> parse_diagnose_request(const v1::DiagnoseRequest& request) {
  if (request.images_size() > kMostImagesRequested) {
    return fail(reason::kInvalidArgument,
                "images: at most " + std::to_string(kMostImagesRequested) +
                    " can be looked for, not " + std::to_string(request.images_size()));
  }
  for (const std::string& image : request.images()) {
    if (image.size() > maxima::kImageBytes) {
      return fail(reason::kInvalidArgument,
                  "images: a name has at most " + std::to_string(maxima::kImageBytes) + " bytes");
    }
    if (is_image_id(image)) continue;
    if (const auto parsed = parse_image_reference(image); !parsed) {
      return std::unexpected(parsed.error().within("images"));
    }
  }
  return std::vector<std::string>(request.images().begin(), request.images().end());
}

asio::awaitable<Result<v1::DiagnoseResponse>> Diagnosis::run(std::vector<std::string> images) {
  AGBOX_CO_TRY(turn, co_await turn_.acquire());
  Services& services = context_.services;
  context_.engine =
      co_await services.engine.diagnose({.requested_images = std::move(images),
                                         .sandbox_images = context_.directory.images(),
                                         .claims = context_.directory});
  // Waits for the rules of a daemon that has just started: nothing can be verified before.
  context_.firewall = co_await services.isolation.look();
  v1::DiagnoseResponse response = std::move(context_.engine.findings);
  for (const auto check : kChecks) co_await check(context_, response);
  if (co_await is_cancelled()) co_return fail(reason::kCancelled, "the diagnosis was cancelled");
  co_return in_order(std::move(response));
}

}  // namespace agbox
