// SPDX-License-Identifier: Apache-2.0
// Runs the engine's checks of `agbox doctor`.
#pragma once

#include "engine/docker/doctor/check_context.h"

namespace agbox {

EngineDiagnosis run_engine_checks(const EngineCheckContext& context);

}  // namespace agbox
