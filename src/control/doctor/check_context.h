// SPDX-License-Identifier: Apache-2.0
// What the checks of `agbox doctor` gather from.
//
// A check is one struct in checks/: `kName`, its facts as fields, gather() that reads them, and
// judge(), a pure function from the facts to findings. A gather() that waits is a coroutine and has
// a deadline. diagnosis.cpp lists all checks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "control/directory.h"
#include "control/doctor/engine_report.h"
#include "control/services.h"
#include "control/upkeep/janitor.h"
#include "model/doctor/findings.h"

namespace agbox {

// The configuration that the services do not have.
struct DiagnosisOptions {
  std::string engine_socket;
  std::filesystem::path lock_file;
};

struct CheckContext {
  Services& services;
  Directory& directory;
  Janitor& janitor;
  DiagnosisOptions options;
  // Shared by several checks, so gathered once and before them.
  std::vector<std::string> images{};  // to look for
  Result<EngineReport> engine{};
};

}  // namespace agbox
