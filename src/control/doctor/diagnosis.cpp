// SPDX-License-Identifier: Apache-2.0
#include "control/doctor/diagnosis.h"

#include <concepts>

#include "async/cancellation.h"
#include "control/doctor/checks/daemon_files.h"
#include "control/doctor/checks/disk.h"
#include "control/doctor/checks/engine.h"
#include "control/doctor/checks/firewall.h"
#include "control/doctor/checks/images.h"
#include "control/doctor/checks/isolation.h"
#include "control/doctor/checks/network.h"
#include "control/doctor/checks/unknown_primaries.h"
#include "engine/docker/images/image_reference.h"
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

// In the order of their findings.
constexpr auto kChecks = {
    &run_check<EngineCheck>,          &run_check<LiveRestoreCheck>,
    &run_check<LayerQuotaCheck>,      &run_check<CapabilityCheck>,
    &run_check<FirewallCheck>,        &run_check<FirewallRepairsCheck>,
    &run_check<IsolationCheck>,       &run_check<OtherFirewallsCheck>,
    &run_check<IpForwardCheck>,       &run_check<AddressPoolCheck>,
    &run_check<ResolversCheck>,       &run_check<StoreCheck>,
    &run_check<StoredSandboxesCheck>, &run_check<LockCheck>,
    &run_check<GuestProgramCheck>,    &run_check<DiskCheck>,
    &run_check<ImagesCheck>,          &run_check<UnknownPrimariesCheck>,
};

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
  const ObjectOwner ours{.instance = services.store.instance_id()};
  context_.images = ImagesCheck::names(std::move(images), context_.directory);
  context_.engine = co_await ask_engine_report(services.engine, context_.options.engine_socket,
                                               ours.labels(), context_.images);
  // Waits for the rules of a daemon that has just started: nothing can be verified before.
  context_.firewall = co_await services.isolation.look();
  v1::DiagnoseResponse response;
  for (const auto check : kChecks) co_await check(context_, response);
  if (co_await is_cancelled()) co_return fail(reason::kCancelled, "the diagnosis was cancelled");
  co_return response;
}

}  // namespace agbox
