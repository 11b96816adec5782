// SPDX-License-Identifier: Apache-2.0
#include "control/doctor/diagnosis.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

#include "async/cancellation.h"
#include "control/doctor/checks/daemon_files.h"
#include "control/doctor/checks/isolation.h"
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
    &run_check<IsolationCheck>,
    &run_check<StoreCheck>,
    &run_check<StoredSandboxesCheck>,
};

// The order of findings in a response, regardless of which layer checked.
constexpr auto kOrder = std::to_array<std::string_view>(
    {"engine", "live-restore", "layer-quota", "capability", "firewall", "firewall-repairs",
     "isolation", "other-firewalls", "ip-forward", "address-pool", "resolvers", "store",
     "stored-sandboxes", "lock", "guest-program", "disk", "user-limits", "images",
     "unknown-primaries"});

v1::DiagnoseResponse in_order(v1::DiagnoseResponse found) {
  std::multimap<std::ptrdiff_t, v1::Finding> by_check;
  for (v1::Finding& finding : *found.mutable_findings()) {
    const auto position = std::ranges::find(kOrder, finding.check()) - kOrder.begin();
    by_check.emplace(position, std::move(finding));
  }
  v1::DiagnoseResponse response;
  for (auto& [position, finding] : by_check) *response.add_findings() = std::move(finding);
  return response;
}

asio::awaitable<v1::DiagnoseResponse> diagnose_place(const CheckContext& context,
                                                     EngineDiagnosis& engine) {
  ActorServices& services = context.services;
  const auto& dns = services.created_with.dns();
  PlaceDiagnosisRequest request{.isolation = {},
                                .resolvers = {dns.begin(), dns.end()},
                                .store = services.store.path(),
                                .lock_file = context.options.lock_file,
                                .engine_directory = std::move(engine.root_directory),
                                .engine_firewall_tables = std::move(engine.firewall_tables)};
  // After a start of the daemon, waits for the firewall rules: nothing can be verified before.
  request.isolation = co_await services.isolation.in_place();
  co_return co_await services.place.diagnose(std::move(request));
}

}  // namespace

Result<std::vector<std::string>> parse_diagnose_request(const v1::DiagnoseRequest& request) {
  if (request.images_size() > kMostImagesRequested) {
    return fail(reason::kInvalidArgument,
                "images: at most " + std::to_string(kMostImagesRequested) +
                    " can be checked, not " + std::to_string(request.images_size()));
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
  ActorServices& services = context_.services;
  AGBOX_ON_CONTROL_THREAD(services.loop);
  AGBOX_CO_TRY(turn, co_await turn_.acquire());
  EngineDiagnosis engine =
      co_await services.engine.diagnose({.requested_images = std::move(images),
                                         .sandbox_images = context_.directory.images(),
                                         .claims = context_.directory});
  v1::DiagnoseResponse response = co_await diagnose_place(context_, engine);
  response.MergeFrom(engine.findings);
  for (const auto check : kChecks) co_await check(context_, response);
  if (co_await is_cancelled()) co_return fail(reason::kCancelled, "the diagnosis was cancelled");
  co_return in_order(std::move(response));
}

}  // namespace agbox
