// SPDX-License-Identifier: Apache-2.0
// The checks of `agbox doctor` that read this machine.
//
// A check is one struct in checks/: `kName`, its facts as fields, gather() that reads them, and
// judge(), a pure function from the facts to findings. One that may block reads on another thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <filesystem>
#include <vector>

#include "agbox/v1/service.pb.h"
#include "base/result.h"
#include "isolation/firewall_facts.h"
#include "model/doctor/findings.h"
#include "model/network/isolation_health.h"
#include "place/local/user_limits.h"
#include "place/place.h"

namespace agbox {

// The inputs of the checks.
struct LocalCheckContext {
  asio::any_io_executor blocking;
  std::filesystem::path guest_program;
  std::filesystem::path output_root;
  std::filesystem::path state_root;
  std::vector<SandboxGuest> guests;
  std::vector<std::filesystem::path> resolver_files;  // empty if network.dns is configured
  IsolationHealth isolation_health;
  Result<FirewallFacts> firewall;
  PlaceDiagnosisRequest request;
};

asio::awaitable<v1::DiagnoseResponse> run_local_checks(LocalCheckContext context);

}  // namespace agbox
