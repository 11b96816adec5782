// SPDX-License-Identifier: Apache-2.0
// The inputs of the checks of `agbox doctor`.
//
// A check is one struct in checks/: `kName`, its facts as fields, gather() that reads them, and
// judge(), a pure function from the facts to findings. A gather() that waits is a coroutine and has
// a deadline. diagnosis.cpp lists all checks. The engine has its own: Engine::diagnose().
#pragma once

#include <filesystem>
#include <vector>

#include "control/actor_services.h"
#include "control/directory.h"
#include "model/doctor/findings.h"

namespace agbox {

// Configuration that the services do not have.
struct DiagnosisOptions {
  std::filesystem::path lock_file;
};

struct CheckContext {
  ActorServices& services;
  Directory& directory;
  DiagnosisOptions options;
};

}  // namespace agbox
