// SPDX-License-Identifier: Apache-2.0
// The inputs of the engine's checks of `agbox doctor`.
//
// A check is one struct in checks/: `kName`, its facts as fields, gather() that reads them, and
// judge(), a pure function from the facts to findings. engine_checks.cpp lists all of them.
#pragma once

#include <string>
#include <vector>

#include "engine/docker/doctor/engine_report.h"
#include "engine/docker/network/host_network_access.h"
#include "engine/docker/network/subnet_pool.h"
#include "engine/docker/objects/orphan_sweep.h"
#include "engine/engine.h"
#include "model/doctor/findings.h"

namespace agbox {

struct EngineCheckContext {
  const EngineDiagnosisRequest& request;
  std::vector<std::string> images;  // to look for
  Result<EngineReport> engine;
  const SubnetPool& subnets;
  const OrphanSweep& orphans;
  const HostNetworkAccess& host;
};

}  // namespace agbox
