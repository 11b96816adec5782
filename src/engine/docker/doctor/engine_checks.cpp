// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/doctor/engine_checks.h"

#include "engine/docker/doctor/checks/address_pool.h"
#include "engine/docker/doctor/checks/engine.h"
#include "engine/docker/doctor/checks/images.h"
#include "engine/docker/doctor/checks/unknown_primaries.h"

namespace agbox {
namespace {

template <class Check>
void run_engine_check(const EngineCheckContext& context, v1::DiagnoseResponse& response) {
  Findings findings(response, Check::kName);
  Check::gather(context).judge(findings);
}

constexpr auto kEngineChecks = {
    &run_engine_check<EngineCheck>,     &run_engine_check<LiveRestoreCheck>,
    &run_engine_check<LayerQuotaCheck>, &run_engine_check<AddressPoolCheck>,
    &run_engine_check<ImagesCheck>,     &run_engine_check<UnknownPrimariesCheck>,
};

// The nftables tables in which the engine accepts packets of containers.
std::vector<std::string> firewall_tables(const Result<EngineReport>& engine) {
  const std::string backend = engine ? engine->firewall_backend : "";
  if (backend.empty() || backend.starts_with("iptables")) return {"ip filter", "ip docker-*"};
  return {"ip docker-*"};
}

}  // namespace

EngineDiagnosis run_engine_checks(const EngineCheckContext& context) {
  EngineDiagnosis diagnosis{
      .root_directory = context.engine ? context.engine->root_directory : std::string(),
      .firewall_tables = firewall_tables(context.engine)};
  for (const auto check : kEngineChecks) check(context, diagnosis.findings);
  return diagnosis;
}

}  // namespace agbox
